#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "limiter.h"
#include "slots.h"
#include "vnpu/names.h"

#define TEMPORARY_SUFFIX ".new."
enum { NO_REPLACE = 1, TEMPORARY_AGE_S = 10, REGION_MODE = 0666, ATTEMPTS = 100 };

/* Gives the file its name, unless the name is taken. */
static bool name_file(const char *temporary, const char *path) {
    if (syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, NO_REPLACE) == 0)
        return true;
    /* Some file systems cannot; a second name does not replace either. */
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    return link(temporary, path) == 0 && unlink(temporary) == 0;
}

static bool fill(int descriptor, mode_t mode, const void *content, size_t size) {
    /* fchmod: the modes of shared files do not depend on the umask of whoever is first. */
    return fchmod(descriptor, mode) == 0 && (errno = posix_fallocate(descriptor, 0, (off_t)size)) == 0 &&
           pwrite(descriptor, content, size, 0) == (ssize_t)size;
}

bool publish_file(const char *path, mode_t mode, const void *content, size_t size, bool locked, int *descriptor) {
    char temporary[VNPU_PATH_LIMIT + 64];

    snprintf(temporary, sizeof temporary, "%s" TEMPORARY_SUFFIX "%llu.%d", path,
             (unsigned long long)vnpu_namespace("pid"), (int)getpid());
    unlink(temporary);
    *descriptor = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (*descriptor < 0)
        return false;
    VNPU_FAULT("file-made");
    if ((!locked || vnpu_lock_try(*descriptor, VNPU_LOCK_KEEPER)) && fill(*descriptor, mode, content, size) &&
        name_file(temporary, path)) {
        VNPU_FAULT("file-named");
        return true;
    }
    int reason = errno;
    unlink(temporary);
    close(*descriptor);
    errno = reason;
    return false;
}

static struct vnpu_region *compose(const struct settings *settings, size_t *size) {
    const struct vnpu_quota *quota = &settings->quota;

    *size = vnpu_region_size(quota->card_count);
    struct vnpu_region *region = calloc(1, *size);
    if (region == NULL || getrandom(&region->key, sizeof region->key, 0) != sizeof region->key) {
        free(region);
        return NULL;
    }
    region->key |= 1; /* 0 is a free tenant */
    region->magic = VNPU_REGION_MAGIC;
    region->version = VNPU_LAYOUT_VERSION;
    region->size = (uint32_t)*size;
    region->card_count = quota->card_count;
    region->slot_count = VNPU_SLOTS;
    region->generation = 1;
    region->mount_namespace = vnpu_namespace("mnt");
    region->created_us = vnpu_now_us();
    region->flags = quota->ceiling ? VNPU_CEILING : 0;
    region->limiter_pid = getpid();
    memcpy(region->registry_dir, settings->registry_dir, sizeof region->registry_dir);
    memcpy(region->mirror_path, settings->mirror_path, sizeof region->mirror_path);
    for (uint32_t index = 0; index < quota->card_count; index++) {
        region->cards[index].quota_pages = (uint64_t)quota->memory_mib * (1024 * 1024 / VNPU_PAGE);
        region->cards[index].id = quota->cards[index];
        region->cards[index].priority = quota->priority;
        region->cards[index].tenant = VNPU_NO_TENANT;
    }
    return region;
}

static bool publish_region(const struct settings *settings, int *descriptor) {
    size_t size;
    struct vnpu_region *region = compose(settings, &size);

    if (region == NULL)
        return false;
    bool published = publish_file(settings->region_path, REGION_MODE, region, size, true, descriptor);
    int reason = errno;
    free(region);
    errno = reason;
    return published;
}

static bool in_use(struct vnpu_region *region) {
    uint32_t used = vnpu_load(&region->slots_used);

    for (uint32_t index = 0; index < used && index < VNPU_SLOTS; index++)
        if (vnpu_owner_lives(vnpu_load(&region->slots[index].owner)))
            return true;
    return false;
}

static bool same_seeds(const struct vnpu_region *region, const struct settings *settings) {
    const struct vnpu_quota *quota = &settings->quota;

    if (region->card_count != quota->card_count ||
        (region->flags & VNPU_CEILING) != (quota->ceiling ? VNPU_CEILING : 0))
        return false;
    for (uint32_t index = 0; index < quota->card_count; index++)
        if (region->cards[index].id != quota->cards[index] || region->cards[index].priority != quota->priority ||
            region->cards[index].quota_pages != (uint64_t)quota->memory_mib * (1024 * 1024 / VNPU_PAGE))
            return false;
    return strcmp(region->registry_dir, settings->registry_dir) == 0;
}

/* A region with living processes rules whatever the environment says now. One without may be left over from a
 * container that is no more, whose namespace had the same number. */
static bool worth_keeping(struct vnpu_region *region, const struct settings *settings) {
    return in_use(region) || same_seeds(region, settings);
}

static void take_over(struct vnpu_region *region) {
    vnpu_add(&region->generation, 1);
    VNPU_FAULT("taking-over");
    vnpu_store(&region->stop, 0);
    vnpu_store(&region->limiter_pid, (int32_t)getpid());
}

/* Something that can be no region: a link, a directory. It goes, so that the container works. */
static void remove_foreign(const char *path) {
    if (errno == ENOENT)
        return;
    log_line("what stands at %s is no region and goes: %s", path, strerror(errno));
    if (unlink(path) != 0)
        log_line("it cannot be removed: %s", strerror(errno));
}

/* With the lock of the file held, nobody else judges or replaces it at the same time. */
static enum keeping keep_locked(const struct settings *settings, struct vnpu_attached *attached, int descriptor) {
    const char *wrong = vnpu_region_attach(settings->region_path, attached);

    if (wrong == NULL && worth_keeping(attached->region, settings)) {
        /* The lock belongs to `descriptor`; the mapping keeps it from here on. */
        close(attached->mapping.descriptor);
        attached->mapping.descriptor = descriptor;
        take_over(attached->region);
        return KEPT;
    }
    if (wrong == NULL)
        vnpu_unmap(&attached->mapping);
    log_line("the region at %s is made anew: %s", settings->region_path,
             wrong == NULL ? "its quota is another" : wrong);
    unlink(settings->region_path);
    return NOT_KEPT;
}

static bool still_named(const char *path, int descriptor) {
    struct stat file;
    struct stat named;

    return fstat(descriptor, &file) == 0 && lstat(path, &named) == 0 && file.st_ino == named.st_ino &&
           file.st_dev == named.st_dev;
}

static enum keeping keep_existing(const struct settings *settings, struct vnpu_attached *attached) {
    off_t size;
    int descriptor = vnpu_open_regular(settings->region_path, &size);

    if (descriptor < 0) {
        remove_foreign(settings->region_path);
        return NOT_KEPT;
    }
    enum keeping keeping = ANOTHER_KEEPS;
    if (vnpu_lock_try(descriptor, VNPU_LOCK_KEEPER)) {
        VNPU_FAULT("region-locked");
        keeping =
            still_named(settings->region_path, descriptor) ? keep_locked(settings, attached, descriptor) : NOT_KEPT;
    }
    if (keeping != KEPT)
        close(descriptor);
    return keeping;
}

enum keeping keep_region(const struct settings *settings, struct vnpu_attached *attached) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int descriptor;

        if (publish_region(settings, &descriptor)) {
            if (!vnpu_map(descriptor, &attached->mapping))
                return NOT_KEPT;
            attached->region = attached->mapping.base;
            return KEPT;
        }
        if (errno != EEXIST)
            return NOT_KEPT;
        enum keeping existing = keep_existing(settings, attached);
        if (existing != NOT_KEPT)
            return existing;
    }
    return NOT_KEPT;
}

/* ---- Abandoned regions */

static bool namespace_lives(unsigned long long inode) {
    DIR *processes = opendir("/proc");
    bool found = processes == NULL;
    struct dirent *entry;

    while (!found && (entry = readdir(processes)) != NULL) {
        char path[300];
        struct stat status;

        snprintf(path, sizeof path, "/proc/%s/ns/mnt", entry->d_name);
        found = *entry->d_name >= '0' && *entry->d_name <= '9' && stat(path, &status) == 0 && status.st_ino == inode;
    }
    if (processes != NULL)
        closedir(processes);
    return found;
}

/* Processes of other pods are in other pid namespaces and not seen, so the locks and the slots must agree too. */
static bool abandoned(const char *path, unsigned long long inode) {
    struct vnpu_attached attached;

    if (namespace_lives(inode) || vnpu_region_attach(path, &attached) != NULL)
        return false;
    int descriptor = attached.mapping.descriptor;
    bool nobody = !vnpu_lock_held(descriptor, VNPU_LOCK_KEEPER) && !vnpu_lock_held(descriptor, VNPU_LOCK_GUARDIAN) &&
                  !in_use(attached.region);
    vnpu_unmap(&attached.mapping);
    return nobody;
}

static bool left_half_made(const char *path) {
    struct stat status;

    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_mtime + TEMPORARY_AGE_S < time(NULL);
}

void remove_abandoned_regions(void) {
    char directory[] = VNPU_REGION_PREFIX;
    char *slash = strrchr(directory, '/');
    struct dirent *entry;

    *slash = '\0';
    DIR *regions = opendir(directory);
    while (regions != NULL && (entry = readdir(regions)) != NULL) {
        char path[sizeof directory + sizeof entry->d_name];
        char *end;

        if (strncmp(entry->d_name, slash + 1, strlen(slash + 1)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unsigned long long inode = strtoull(entry->d_name + strlen(slash + 1), &end, 10);
        if (*end == '\0' ? abandoned(path, inode)
                         : strncmp(end, TEMPORARY_SUFFIX, strlen(TEMPORARY_SUFFIX)) == 0 && left_half_made(path))
            unlink(path);
    }
    if (regions != NULL)
        closedir(regions);
}
