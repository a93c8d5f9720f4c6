/* Who is alive: one slot of the region for each process that uses the NPU. */
#ifndef VNPU_SLOTS_H
#define VNPU_SLOTS_H

#include <linux/futex.h>
#include <stdbool.h>

#include "vnpu/region.h"

/* The kernel walks this when its thread ends, however it ends. It lies in memory that lives as long as the thread. */
struct vnpu_vow {
    struct robust_list entry;
    struct robust_list_head head;
};

/* Claims a slot for the calling thread, which must live as long as its process and own no robust mutex. Its books are
 * empty. Returns the index, or -1 when all VNPU_SLOTS are taken. */
int vnpu_slot_claim(struct vnpu_region *region, struct vnpu_vow *vow);

/* Whether a slot with this owner word belongs to a living process. */
bool vnpu_owner_lives(uint32_t owner);
/* Whether what its books say still counts: it lives, or died so recently that the device may not have freed it yet. */
bool vnpu_owner_counts(uint32_t owner);

/* Declares all dead slots worth nothing, each once the kernel has closed the files of its process and with them its
 * device memory; waits a little for that. */
void vnpu_slots_sweep(struct vnpu_region *region);

#endif
