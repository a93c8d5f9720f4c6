#include "slots.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "prim.h"

/* The owner dies before its files are closed, and they are closed before the device frees: where the process cannot
 * be looked up (another pid namespace) or does not end, this is how long its memory still counts. */
enum { CLOSING_US = 200000, CLOSING_LOOK_US = 500 };

bool vnpu_owner_lives(uint32_t owner) {
    return (owner & VNPU_OWNER_TID) != 0 && (owner & (VNPU_OWNER_DIED | VNPU_OWNER_SETTLING)) == 0;
}

bool vnpu_owner_counts(uint32_t owner) {
    return owner != 0 && (owner & VNPU_OWNER_SETTLING) == 0;
}

/* From here on the kernel sets VNPU_OWNER_DIED in `slot->owner` when this thread ends, if the word is its id then. */
static void swear(struct vnpu_vow *vow, struct vnpu_slot *slot) {
    vow->entry.next = &vow->head.list;
    vow->head.futex_offset = (char *)&slot->owner - (char *)&vow->entry;
    vow->head.list_op_pending = NULL;
    vow->head.list.next = &vow->entry;
    syscall(SYS_set_robust_list, &vow->head, sizeof vow->head);
}

static void settle(struct vnpu_region *region, uint32_t index) {
    struct vnpu_slot *slot = &region->slots[index];

    for (uint32_t card = 0; card < region->card_count; card++) {
        struct vnpu_book *book = &region->books[card].slots[index];
        /* The tag moves on, so that nobody who looked at the dead owner's question takes back ours. */
        uint64_t tag = (vnpu_load_relaxed(&book->charge) + 1) & VNPU_CHARGE_TAG;

        vnpu_store_relaxed(&book->charge, tag);
        vnpu_store_relaxed(&book->overhead, 0);
        vnpu_store_relaxed(&book->running, 0);
    }
    vnpu_store_relaxed(&slot->pid, (int32_t)getpid());
    vnpu_store_relaxed(&slot->pid_namespace, vnpu_namespace("pid"));
    vnpu_store_relaxed(&slot->joined_us, vnpu_now_us());
    vnpu_store_relaxed(&slot->generation, vnpu_load_relaxed(&region->generation));
    prctl(PR_GET_NAME, slot->name);
}

static void raise_high_water(struct vnpu_region *region, uint32_t used) {
    uint32_t seen = vnpu_load_ordered(&region->slots_used);

    while (seen < used && !vnpu_swap(&region->slots_used, &seen, used))
        ;
}

static bool claim(struct vnpu_region *region, struct vnpu_vow *vow, uint32_t index, uint32_t thread) {
    struct vnpu_slot *slot = &region->slots[index];
    uint32_t owner = vnpu_load(&slot->owner);

    /* Dead while settling: its books never counted, so there is nothing to bury. */
    if (owner != 0 && owner != (VNPU_OWNER_SETTLING | VNPU_OWNER_DIED))
        return false;
    swear(vow, slot);
    if (!vnpu_swap(&slot->owner, &owner, thread | VNPU_OWNER_SETTLING)) {
        vow->head.list.next = &vow->head.list;
        return false;
    }
    VNPU_FAULT("slot-settling");
    raise_high_water(region, index + 1);
    settle(region, index);
    vnpu_store(&slot->owner, thread);
    VNPU_FAULT("slot-claimed");
    return true;
}

int vnpu_slot_claim(struct vnpu_region *region, struct vnpu_vow *vow) {
    uint32_t thread = (uint32_t)vnpu_thread_id();

    /* The second round comes after the burial of all that are dead. */
    for (int round = 0; round < 2; round++) {
        for (uint32_t index = 0; index < VNPU_SLOTS; index++)
            if (claim(region, vow, index, thread))
                return (int)index;
        vnpu_slots_sweep(region);
    }
    return -1;
}

static bool closed_its_files(const struct vnpu_slot *slot) {
    return vnpu_load_relaxed(&slot->pid_namespace) == vnpu_namespace("pid") &&
           vnpu_process_gone(vnpu_load_relaxed(&slot->pid));
}

/* Waits until the kernel has closed the files of the dead slot's process, and with them its device memory, but not
 * beyond the deadline; then declares the slot worth nothing. */
static void bury(struct vnpu_slot *slot, uint32_t owner, uint64_t deadline) {
    while ((owner & VNPU_OWNER_SETTLING) == 0 && !closed_its_files(slot) && vnpu_now_us() < deadline &&
           vnpu_load(&slot->owner) == owner)
        vnpu_sleep_us(CLOSING_LOOK_US);
    vnpu_swap(&slot->owner, &owner, 0);
}

void vnpu_slots_sweep(struct vnpu_region *region) {
    uint32_t used = vnpu_load(&region->slots_used);
    uint32_t owners[VNPU_SLOTS];
    uint32_t count = used < VNPU_SLOTS ? used : VNPU_SLOTS;
    uint64_t deadline = 0;

    for (uint32_t index = 0; index < count; index++)
        owners[index] = vnpu_load(&region->slots[index].owner);
    /* Those who were dead by now share one deadline: whoever waits for many waits no longer than for one. */
    for (uint32_t index = 0; index < count; index++) {
        if ((owners[index] & VNPU_OWNER_DIED) == 0)
            continue;
        if (deadline == 0)
            deadline = vnpu_now_us() + CLOSING_US;
        bury(&region->slots[index], owners[index], deadline);
    }
}
