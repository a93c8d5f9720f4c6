#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "limiter.h"
#include "vnpu/names.h"

enum { REGISTRY_MODE = 0666 };

static bool publish_registry(const char *path, uint32_t id) {
    int descriptor;
    struct vnpu_registry *registry = calloc(1, sizeof *registry);

    if (registry == NULL)
        return false;
    registry->magic = VNPU_REGISTRY_MAGIC;
    registry->version = VNPU_LAYOUT_VERSION;
    registry->size = sizeof *registry;
    registry->id = id;
    registry->tenant_count = VNPU_TENANTS;
    registry->created_us = vnpu_now_us();
    bool published = publish_file(path, REGISTRY_MODE, registry, sizeof *registry, false, &descriptor);
    int reason = errno;
    if (published)
        close(descriptor);
    free(registry);
    errno = reason;
    return published || errno == EEXIST;
}

static bool open_registry(const struct vnpu_region *region, uint32_t id, struct tenancy *tenancy) {
    char path[sizeof region->registry_dir + 64];

    snprintf(path, sizeof path, "%s/%u" VNPU_REGISTRY_SUFFIX, region->registry_dir, id);
    if (!publish_registry(path, id)) {
        log_line("the registry %s cannot be made: %s", path, strerror(errno));
        return false;
    }
    const char *wrong = vnpu_registry_attach(path, id, &tenancy->mapping);
    if (wrong != NULL) {
        log_line("the registry %s cannot be used: %s", path, wrong);
        return false;
    }
    tenancy->registry = tenancy->mapping.base;
    return true;
}

/* A boot ago, or by a clock that is not ours: such a time says nothing good about its writer. */
static bool silent(uint64_t seen_us) {
    uint64_t now = vnpu_now_us();

    return seen_us > now || now - seen_us > VNPU_TENANT_SILENCE_US;
}

/* A place is taken with its lock; one that was left in the middle of a restart waits for its own limiter. */
static bool claim(struct tenancy *tenancy, uint32_t index, uint64_t key) {
    struct vnpu_tenant *tenant = &tenancy->registry->tenants[index];

    if (!vnpu_lock_try(tenancy->mapping.descriptor, VNPU_LOCK_TENANT + (off_t)index))
        return false;
    uint64_t found = vnpu_load(&tenant->key);
    if (found == key || found == 0 || silent(vnpu_load(&tenant->seen_us))) {
        tenancy->tenant = tenant;
        return true;
    }
    vnpu_unlock(tenancy->mapping.descriptor, VNPU_LOCK_TENANT + (off_t)index);
    return false;
}

static bool find_place(struct tenancy *tenancy, uint32_t old, uint64_t key) {
    if (old < VNPU_TENANTS && vnpu_load(&tenancy->registry->tenants[old].key) == key && claim(tenancy, old, key))
        return true;
    for (uint32_t index = 0; index < VNPU_TENANTS; index++)
        if (claim(tenancy, index, key))
            return true;
    return false;
}

static void move_in(struct vnpu_tenant *tenant, const struct vnpu_region *region, const struct vnpu_card *card) {
    vnpu_store(&tenant->key, 0);
    VNPU_FAULT("moving-in");
    vnpu_store_relaxed(&tenant->virtual_us, 0);
    vnpu_store_relaxed(&tenant->held_us, 0);
    vnpu_store_relaxed(&tenant->wanted_us, 0);
    vnpu_store_relaxed(&tenant->arrival_us, 0);
    vnpu_store_relaxed(&tenant->wants, 0);
    vnpu_store_relaxed(&tenant->weight, card->priority);
    vnpu_store_relaxed(&tenant->flags, region->flags & VNPU_CEILING);
    vnpu_store_relaxed(&tenant->seen_us, vnpu_now_us());
    vnpu_store(&tenant->key, region->key);
}

static bool join(struct vnpu_region *region, struct vnpu_card *card, struct tenancy *tenancy) {
    if (tenancy->registry == NULL && !open_registry(region, card->id, tenancy))
        return false;
    if (!find_place(tenancy, vnpu_load(&card->tenant), region->key)) {
        log_line("card %u has no place for another container", card->id);
        return false;
    }
    if (vnpu_load(&tenancy->tenant->key) != region->key)
        move_in(tenancy->tenant, region, card);
    VNPU_FAULT("moved-in");
    vnpu_store(&card->tenant_key, region->key);
    vnpu_store(&card->tenant, (uint32_t)(tenancy->tenant - tenancy->registry->tenants));
    return true;
}

bool keep_tenancies(struct vnpu_region *region, struct tenancy tenancies[VNPU_CARDS]) {
    bool all = true;

    for (uint32_t index = 0; index < region->card_count; index++) {
        struct tenancy *tenancy = &tenancies[index];

        if (tenancy->tenant != NULL && vnpu_load(&tenancy->tenant->key) == region->key)
            vnpu_store(&tenancy->tenant->seen_us, vnpu_now_us());
        else
            all &= join(region, &region->cards[index], tenancy);
    }
    return all;
}
