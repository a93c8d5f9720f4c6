#include "books.h"

#include <sched.h>

#include "atomics.h"
#include "fault.h"
#include "prim.h"
#include "slots.h"

/* How long a later slot lets an earlier one decide before it takes the question back: a running process needs less than
 * a microsecond, so whoever takes longer is stopped or waits for a processor. */
enum { PATIENCE_US = 1000 };

static uint64_t held(uint64_t charge) {
    return charge >> VNPU_CHARGE_HELD_SHIFT;
}

static uint64_t asked(uint64_t charge) {
    return charge >> VNPU_CHARGE_ASKED_SHIFT & VNPU_CHARGE_PAGES;
}

static uint64_t packed(uint64_t held_pages, uint64_t asked_pages, uint64_t tag) {
    return held_pages << VNPU_CHARGE_HELD_SHIFT | asked_pages << VNPU_CHARGE_ASKED_SHIFT | (tag & VNPU_CHARGE_TAG);
}

static uint32_t used(struct vnpu_region *region) {
    uint32_t count = vnpu_load_ordered(&region->slots_used);

    return count < VNPU_SLOTS ? count : VNPU_SLOTS;
}

/* What stands in the books of one card, as a question sees it. */
struct survey {
    uint64_t charged; /* held and overhead of all who count, ourselves included */
    uint64_t earlier; /* asked by slots before ours */
    uint64_t later;   /* asked by slots after ours */
    bool dead;        /* some of what is charged belongs to the dead */
    uint64_t fingerprint;
};

static void survey_slot(struct vnpu_region *region, uint32_t card, uint32_t index, uint32_t mine,
                        struct survey *survey) {
    struct vnpu_book *book = &region->books[card].slots[index];
    uint64_t charge = vnpu_load_ordered(&book->charge);
    uint64_t overhead = vnpu_load_relaxed(&book->overhead);

    if (held(charge) + asked(charge) + overhead == 0)
        return;
    uint32_t owner = vnpu_load_ordered(&region->slots[index].owner);
    if (!vnpu_owner_counts(owner))
        return;
    survey->charged += held(charge) + overhead;
    survey->fingerprint = (survey->fingerprint + index + 1) * 0x9e3779b97f4a7c15 + (held(charge) << 20) + overhead;
    if ((owner & VNPU_OWNER_DIED) != 0)
        survey->dead = true;
    else if (index < mine)
        survey->earlier += asked(charge);
    else if (index > mine)
        survey->later += asked(charge);
}

static struct survey survey(struct vnpu_ledger *ledger, uint32_t card) {
    struct survey result = {0};
    uint32_t count = used(ledger->region);

    for (uint32_t index = 0; index < count; index++)
        survey_slot(ledger->region, card, index, ledger->slot, &result);
    return result;
}

/* Publishes the question; returns its tag. */
static uint64_t ask(uint64_t *charge, uint64_t pages) {
    uint64_t seen = vnpu_load_relaxed(charge);

    while (!vnpu_swap(charge, &seen, packed(held(seen), pages, seen + 1)))
        ;
    return (seen + 1) & VNPU_CHARGE_TAG;
}

/* Ends a question that still stands: what was asked is held from now on, or forgotten. False when somebody took it
 * back. */
static bool answer(uint64_t *charge, uint64_t tag, bool granted) {
    uint64_t seen = vnpu_load_relaxed(charge);

    do {
        if ((seen & VNPU_CHARGE_TAG) != tag || asked(seen) == 0)
            return false;
    } while (!vnpu_swap(charge, &seen, packed(held(seen) + (granted ? asked(seen) : 0), 0, seen + 1)));
    return true;
}

static void take_back_questions(struct vnpu_ledger *ledger, uint32_t card, uint32_t from, uint32_t to) {
    for (uint32_t index = from; index < to; index++) {
        uint64_t *charge = &ledger->region->books[card].slots[index].charge;
        uint64_t seen = vnpu_load_ordered(charge);

        while (asked(seen) != 0 && !vnpu_swap(charge, &seen, packed(held(seen), 0, seen + 1)))
            ;
    }
}

/* Without our own question in the way, earlier ones are decided at once; those of stopped processes never are. */
static void let_earlier_decide(struct vnpu_ledger *ledger, uint32_t card) {
    uint64_t deadline = vnpu_now_us() + PATIENCE_US;

    while (survey(ledger, card).earlier != 0) {
        if (vnpu_now_us() > deadline) {
            take_back_questions(ledger, card, 0, ledger->slot);
            return;
        }
        sched_yield();
    }
}

enum outcome { GRANTED, REFUSED, ASK_AGAIN };

/* What the sum found too much may have moved from one slot to another meanwhile and been seen twice: only two surveys
 * that saw the same are the truth. */
static bool still_too_much(struct vnpu_ledger *ledger, uint32_t card, uint64_t room, struct survey before) {
    for (;;) {
        struct survey now = survey(ledger, card);

        if (now.charged <= room)
            return false;
        if (now.fingerprint == before.fingerprint)
            return true;
        before = now;
    }
}

static enum outcome weigh(struct vnpu_ledger *ledger, uint32_t card, uint64_t room, uint64_t tag) {
    uint64_t *charge = &ledger->region->books[card].slots[ledger->slot].charge;

    for (;;) {
        struct survey now = survey(ledger, card);

        if (now.charged > room) {
            answer(charge, tag, false);
            if (now.dead)
                vnpu_slots_sweep(ledger->region);
            else if (still_too_much(ledger, card, room, now))
                return REFUSED;
            return ASK_AGAIN;
        }
        if (now.charged + now.earlier > room) {
            answer(charge, tag, false);
            let_earlier_decide(ledger, card);
            return ASK_AGAIN;
        }
        /* Whoever asks after this survey sees our question, so it is they who give way to it. */
        if (now.charged + now.earlier + now.later <= room)
            return answer(charge, tag, true) ? GRANTED : ASK_AGAIN;
        /* One of them may be granted before its question is taken back: look again. */
        take_back_questions(ledger, card, ledger->slot + 1, used(ledger->region));
    }
}

static enum outcome decide(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages) {
    struct vnpu_region *region = ledger->region;
    uint64_t quota = vnpu_load_relaxed(&region->cards[card].quota_pages);

    if (quota > VNPU_CHARGE_PAGES)
        quota = VNPU_CHARGE_PAGES;
    if (pages > quota)
        return REFUSED;
    uint64_t tag = ask(&region->books[card].slots[ledger->slot].charge, pages);
    VNPU_FAULT("asked");
    return weigh(ledger, card, quota - pages, tag);
}

bool vnpu_reserve(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages) {
    enum outcome outcome;

    pthread_mutex_lock(&ledger->asking[card]);
    do
        outcome = decide(ledger, card, pages);
    while (outcome == ASK_AGAIN);
    pthread_mutex_unlock(&ledger->asking[card]);
    if (outcome == GRANTED)
        VNPU_FAULT("reserved");
    else
        vnpu_add_relaxed(&ledger->region->cards[card].denials, 1);
    return outcome == GRANTED;
}

void vnpu_release(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages) {
    uint64_t *charge = &ledger->region->books[card].slots[ledger->slot].charge;

    VNPU_FAULT("releasing");
    vnpu_add(charge, -(pages << VNPU_CHARGE_HELD_SHIFT));
}

void vnpu_charge_overhead(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages) {
    vnpu_add(&ledger->region->books[card].slots[ledger->slot].overhead, pages);
}

void vnpu_release_overhead(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages) {
    vnpu_add(&ledger->region->books[card].slots[ledger->slot].overhead, -pages);
}

struct vnpu_holdings vnpu_holdings(struct vnpu_region *region, uint32_t card) {
    struct vnpu_holdings sum = {0, 0};
    uint32_t count = used(region);

    for (uint32_t index = 0; index < count; index++) {
        struct vnpu_book *book = &region->books[card].slots[index];

        if (!vnpu_owner_counts(vnpu_load(&region->slots[index].owner)))
            continue;
        sum.held += held(vnpu_load(&book->charge));
        sum.overhead += vnpu_load_relaxed(&book->overhead);
    }
    return sum;
}
