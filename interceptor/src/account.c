#include "account.h"

#include "devices.h"

uint64_t vnpu_pages(uint64_t bytes, uint64_t page) {
    if (bytes > (uint64_t)VNPU_CHARGE_PAGES * VNPU_PAGE)
        return 0;
    return (bytes + page - 1) / page * (page / VNPU_PAGE);
}

bool vnpu_take(struct vnpu_process *self, int card, uint64_t pages, bool overhead) {
    if (!overhead)
        return vnpu_reserve(&self->ledger, (uint32_t)card, pages);
    vnpu_charge_overhead(&self->ledger, (uint32_t)card, pages);
    return true;
}

void vnpu_give(struct vnpu_process *self, int card, uint64_t pages, bool overhead) {
    (overhead ? vnpu_release_overhead : vnpu_release)(&self->ledger, (uint32_t)card, pages);
}

__thread struct vnpu_taken *vnpu_taken_above;

void vnpu_stand_aside(struct vnpu_process *self) {
    struct vnpu_taken *taken = vnpu_taken_above;

    if (taken == NULL || taken->card == VNPU_NO_CARD)
        return;
    vnpu_give(self, taken->card, taken->pages, false);
    taken->card = VNPU_NO_CARD;
}

bool vnpu_keep(struct vnpu_process *self, enum vnpu_kind kind, uint64_t key, int card, uint64_t pages, bool overhead) {
    const struct vnpu_record record = {
        .key = key, .pages = pages, .refs = 1, .card = (uint8_t)card, .kind = (uint8_t)kind, .overhead = overhead};

    return vnpu_track(&self->tracker, &record);
}

void vnpu_forget_card(struct vnpu_process *self, int card) {
    struct vnpu_record record;

    while (vnpu_untrack_any(&self->tracker, (uint8_t)card, &record))
        vnpu_give(self, card, record.pages, record.overhead);
}
