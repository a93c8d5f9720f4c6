#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "atomics.h"
#include "vnpu/names.h"

size_t vnpu_region_size(uint32_t card_count) {
    return offsetof(struct vnpu_region, books) + card_count * sizeof(struct vnpu_books);
}

bool vnpu_region_path(char path[VNPU_PATH_LIMIT]) {
    const char *given = getenv(VNPU_ENV_REGION);

    if (given != NULL && *given != '\0')
        return (size_t)snprintf(path, VNPU_PATH_LIMIT, "%s", given) < VNPU_PATH_LIMIT;
    uint64_t mounts = vnpu_namespace("mnt");
    snprintf(path, VNPU_PATH_LIMIT, VNPU_REGION_PREFIX "%llu", (unsigned long long)mounts);
    return mounts != 0;
}

static const char *open_failure(void) {
    if (errno == ENOENT)
        return "there is none";
    if (errno == ELOOP)
        return "its name is a symbolic link";
    if (errno == EACCES || errno == EPERM)
        return "this user may not open it";
    return "it is no regular file, or cannot be opened";
}

/* The head is read with read(2) before anything is mapped: a short file cannot end us with SIGBUS. */
static const char *judge_region(int descriptor, off_t size) {
    struct vnpu_region head;
    const size_t need = offsetof(struct vnpu_region, cards);

    if (size < (off_t)need || pread(descriptor, &head, need, 0) != (ssize_t)need)
        return "it is too short";
    if (head.magic != VNPU_REGION_MAGIC)
        return "it is no region";
    if (head.version != VNPU_LAYOUT_VERSION || head.slot_count != VNPU_SLOTS)
        return "it is of another version of this software";
    if (head.card_count < 1 || head.card_count > VNPU_CARDS || (off_t)head.size != size ||
        vnpu_region_size(head.card_count) != head.size || head.generation == 0)
        return "it is damaged";
    return NULL;
}

static const char *judge_registry(int descriptor, off_t size, uint32_t id) {
    struct vnpu_registry head;
    const size_t need = offsetof(struct vnpu_registry, turn);

    if (size != (off_t)sizeof head || pread(descriptor, &head, need, 0) != (ssize_t)need)
        return "it is too short or too long";
    if (head.magic != VNPU_REGISTRY_MAGIC)
        return "it is no registry";
    if (head.version != VNPU_LAYOUT_VERSION || head.tenant_count != VNPU_TENANTS || head.size != sizeof head)
        return "it is of another version of this software";
    return head.id == id ? NULL : "it is the registry of another card";
}

const char *vnpu_region_attach(const char *path, struct vnpu_attached *attached) {
    off_t size;
    int descriptor = vnpu_open_regular(path, &size);

    if (descriptor < 0)
        return open_failure();
    const char *wrong = judge_region(descriptor, size);
    if (wrong != NULL) {
        close(descriptor);
        return wrong;
    }
    if (!vnpu_map(descriptor, &attached->mapping))
        return "it cannot be mapped, or is not reserved in full";
    attached->region = attached->mapping.base;
    return NULL;
}

const char *vnpu_registry_attach(const char *path, uint32_t id, struct vnpu_mapping *mapping) {
    off_t size;
    int descriptor = vnpu_open_regular(path, &size);

    if (descriptor < 0)
        return open_failure();
    const char *wrong = judge_registry(descriptor, size, id);
    if (wrong != NULL) {
        close(descriptor);
        return wrong;
    }
    return vnpu_map(descriptor, mapping) ? NULL : "it cannot be mapped, or is not reserved in full";
}

bool vnpu_limiter_lives(const char *path, const struct vnpu_attached *attached) {
    off_t size;
    /* A descriptor of this moment: an application may close every descriptor that it does not know. */
    int descriptor = vnpu_open_regular(path, &size);

    if (descriptor < 0)
        return false;
    bool lives = vnpu_same_file(path, &attached->mapping) && vnpu_lock_held(descriptor, VNPU_LOCK_LIMITER);
    close(descriptor);
    return lives;
}
