#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "atomics.h"
#include "books.h"
#include "fault.h"
#include "limiter.h"
#include "prim.h"
#include "slots.h"
#include "turns.h"

enum { MIRROR_MODE = 0644 };

static bool prepare(int descriptor) {
    return fchmod(descriptor, MIRROR_MODE) == 0 && ftruncate(descriptor, sizeof(struct vnpu_mirror)) == 0 &&
           (errno = posix_fallocate(descriptor, 0, sizeof(struct vnpu_mirror))) == 0;
}

static bool open_mirror(struct mirror *mirror, const char *path) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, MIRROR_MODE);

    if (descriptor >= 0 && !prepare(descriptor)) {
        close(descriptor);
        descriptor = -1;
    }
    if (descriptor >= 0 && vnpu_map(descriptor, &mirror->mapping))
        return true;
    if (!mirror->failed)
        log_line("the mirror %s cannot be written: %s", path, strerror(errno));
    mirror->failed = true;
    return false;
}

static uint64_t bytes(uint64_t pages) {
    return pages * VNPU_PAGE;
}

static uint64_t held(const struct vnpu_book *book) {
    return (vnpu_load_relaxed(&book->charge) >> VNPU_CHARGE_HELD_SHIFT) + vnpu_load_relaxed(&book->overhead);
}

/* Upstream has room for 64 processes; the last one stands for all further ones. */
static uint32_t write_processes(struct vnpu_mirror *out, struct vnpu_region *region) {
    uint32_t count = 0;
    uint32_t used = vnpu_load(&region->slots_used);

    memset(out->processes, 0, sizeof out->processes);
    for (uint32_t slot = 0; slot < used && slot < VNPU_SLOTS; slot++) {
        if (!vnpu_owner_lives(vnpu_load(&region->slots[slot].owner)))
            continue;
        uint32_t row = count < VNPU_UPSTREAM_PROCESSES ? count : VNPU_UPSTREAM_PROCESSES - 1;
        struct vnpu_upstream_process *process = &out->processes[row];

        process->pid = vnpu_load_relaxed(&region->slots[slot].pid);
        process->active = 1;
        for (uint32_t card = 0; card < region->card_count && card < VNPU_UPSTREAM_CARDS; card++)
            process->memory[card] += bytes(held(&region->books[card].slots[slot]));
        count++;
    }
    return count;
}

static uint32_t weight_sum(struct vnpu_registry *registry) {
    uint32_t sum = 0;

    for (uint32_t index = 0; registry != NULL && index < VNPU_TENANTS; index++)
        if (vnpu_load(&registry->tenants[index].key) != 0)
            sum += vnpu_load_relaxed(&registry->tenants[index].weight);
    return sum;
}

static uint32_t tenant_index(const struct tenancy *tenancy) {
    return (uint32_t)(tenancy->tenant - tenancy->registry->tenants);
}

/* Readers take a sum that goes back for a new one. It does so for a moment when a turn ends, and for good when the
 * tenant is new: only who is behind twice is. */
static uint64_t held_us(struct mirror *mirror, uint32_t index, const struct tenancy *tenancy) {
    uint64_t held = tenancy->tenant == NULL ? 0 : vnpu_held_us(tenancy->registry, tenant_index(tenancy), vnpu_now_us());

    mirror->behind[index] = held < mirror->held_us[index] && !mirror->behind[index];
    if (!mirror->behind[index])
        mirror->held_us[index] = held;
    return mirror->held_us[index];
}

static void write_card(struct mirror *mirror, struct vnpu_region *region, uint32_t index,
                       const struct tenancy *tenancy) {
    struct vnpu_mirror *out = mirror->mapping.base;
    const struct vnpu_card *card = &region->cards[index];
    struct vnpu_holdings holdings = vnpu_holdings(region, index);
    bool joined = tenancy->tenant != NULL;

    out->memory_limit = bytes(card->quota_pages);
    out->memory_used += bytes(holdings.held + holdings.overhead);
    out->cards[index] = (struct vnpu_mirror_card){
        .quota = bytes(card->quota_pages),
        .used = bytes(holdings.held),
        .overhead = bytes(holdings.overhead),
        .held_us = held_us(mirror, index, tenancy),
        .denials = vnpu_load_relaxed(&card->denials),
        .waits = vnpu_load_relaxed(&card->waits),
        .wait_us = vnpu_load_relaxed(&card->wait_us),
        .longest_us = vnpu_load_relaxed(&card->longest_us),
        .id = card->id,
        .priority = card->priority,
        .weight_sum = weight_sum(tenancy->registry),
        .weight = joined ? vnpu_weight(tenancy->registry, tenant_index(tenancy)) : 0,
    };
}

void write_mirror(struct mirror *mirror, struct vnpu_region *region, const struct tenancy tenancies[VNPU_CARDS]) {
    struct timespec now;

    if (*region->mirror_path == '\0' || (mirror->mapping.base == NULL && !open_mirror(mirror, region->mirror_path)))
        return;
    struct vnpu_mirror *out = mirror->mapping.base;
    uint32_t unmanaged = count_unmanaged(NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    vnpu_add(&out->sequence, (out->sequence & 1) != 0 ? 2 : 1);
    VNPU_FAULT("mirror-open");
    out->priority = region->cards[0].priority;
    out->memory_used = 0;
    out->process_count = write_processes(out, region);
    out->active_workers = out->process_count;
    out->state = out->process_count != 0;
    out->unmanaged_count = unmanaged;
    for (uint32_t index = 0; index < region->card_count; index++)
        write_card(mirror, region, index, &tenancies[index]);
    out->card_count = region->card_count;
    out->generation = vnpu_load(&region->generation);
    out->written_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    out->version = VNPU_LAYOUT_VERSION;
    out->size = sizeof *out;
    vnpu_store(&out->magic, VNPU_MIRROR_MAGIC);
    vnpu_add(&out->sequence, 1);
}
