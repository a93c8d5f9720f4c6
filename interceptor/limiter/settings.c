#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limiter.h"
#include "vnpu/names.h"

static bool complain(const char *name, const char *value, const char *allowed) {
    if (value == NULL)
        fprintf(stderr, "limiter: %s: absent: %s\n", name, allowed);
    else
        fprintf(stderr, "limiter: %s: \"%.100s\": %s\n", name, value, allowed);
    log_line("%s cannot be used: %s", name, allowed);
    return false;
}

static bool read_environment(struct vnpu_quota *quota) {
    static const struct {
        const char *name;
        const char *(*parse)(const char *text, struct vnpu_quota *quota);
        bool needed;
    } members[] = {{VNPU_ENV_MEMORY, vnpu_parse_memory, true},
                   {VNPU_ENV_PRIORITY, vnpu_parse_priority, false},
                   {VNPU_ENV_CEILING, vnpu_parse_ceiling, false}};

    for (size_t index = 0; index < sizeof members / sizeof *members; index++) {
        const char *value = getenv(members[index].name);

        if (value == NULL && !members[index].needed)
            continue;
        const char *wrong = members[index].parse(value == NULL ? "" : value, quota);
        if (wrong != NULL)
            return complain(members[index].name, value, wrong);
    }
    return true;
}

/* The file that the device plugin mounts beats the environment, which a workload may change. */
static bool read_quota(struct vnpu_quota *quota) {
    char text[VNPU_QUOTA_FILE_LIMIT + 1];
    int file = open(VNPU_QUOTA_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (file < 0 && errno == ENOENT)
        return read_environment(quota);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    if (length < 0)
        return complain(VNPU_QUOTA_FILE, strerror(errno), "a file that can be read is allowed");
    const char *wrong = vnpu_parse_quota_file(text, (size_t)length, quota);
    if (wrong == NULL)
        return true;
    text[length <= VNPU_QUOTA_FILE_LIMIT ? length : VNPU_QUOTA_FILE_LIMIT] = '\0';
    return complain(VNPU_QUOTA_FILE, text, wrong);
}

static bool read_cards(struct vnpu_quota *quota) {
    const char *value = getenv(VNPU_ENV_VISIBLE_DEVICES);
    const char *wrong = vnpu_parse_cards(value == NULL ? "" : value, quota);

    return wrong == NULL || complain(VNPU_ENV_VISIBLE_DEVICES, value, wrong);
}

/* The registries stand in the directory of upstream's own, whose name the variable holds. There is no default: in
 * another directory this container would share its cards with nobody, and take all of their time. */
static bool read_registry_dir(char dir[VNPU_PATH_LIMIT]) {
    const char *value = getenv(VNPU_ENV_GLOBAL_SHM);
    const char *slash = value == NULL ? NULL : strrchr(value, '/');

    if (slash == NULL || *value != '/' || strlen(value) >= VNPU_PATH_LIMIT)
        return complain(VNPU_ENV_GLOBAL_SHM, value,
                        "an absolute path of at most 255 bytes in the directory that the containers of a card share, "
                        "such as the device plugin's /hami-shared-region/0_global_registry, is allowed");
    snprintf(dir, VNPU_PATH_LIMIT, "%.*s", slash == value ? 1 : (int)(slash - value), value);
    return true;
}

static bool read_mirror_path(char path[VNPU_PATH_LIMIT]) {
    const char *value = getenv(VNPU_ENV_LOCAL_SHM);

    if (value == NULL || *value == '\0')
        return true;
    if (*value != '/' || strlen(value) >= VNPU_PATH_LIMIT)
        return complain(VNPU_ENV_LOCAL_SHM, value, "an absolute path of at most 255 bytes is allowed");
    strcpy(path, value);
    return true;
}

bool read_settings(struct settings *settings) {
    memset(settings, 0, sizeof *settings);
    if (!vnpu_region_path(settings->region_path))
        return complain(VNPU_ENV_REGION, getenv(VNPU_ENV_REGION),
                        "a path of at most 255 bytes is allowed; without one /proc must be mounted");
    return read_quota(&settings->quota) && read_cards(&settings->quota) && read_registry_dir(settings->registry_dir) &&
           read_mirror_path(settings->mirror_path);
}
