/* Whose turn a card is: the rules over one registry, without a clock, a thread or a process of their own.
 *
 * Every transition is one compare-and-swap on `registry->turn`, and whoever wins it charges the holder that it ends. A
 * tenant's virtual time grows by the time that it held the card over its weight; the next turn goes to the one with the
 * least that wants. A kernel longer than its turn is thereby a debt, and a tenant that comes back is at most one turn
 * behind. All times are microseconds of CLOCK_MONOTONIC, given by the caller. */
#ifndef VNPU_TURNS_H
#define VNPU_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "prim.h"
#include "vnpu/region.h"

enum {
    VNPU_PERIOD_US = 100000,          /* in which everybody who wants gets a turn */
    VNPU_TURN_LEAST_US = 2000,        /* shorter turns would be all change and no work */
    VNPU_PREEMPT_US = 2000,           /* who begins to want and is this far behind closes the turn at once */
    VNPU_SILENCE_US = 60000,          /* a closing holder whose beat stands still so long is passed over */
    VNPU_DRAIN_LONGEST_US = 10000000, /* and one that beats, after this */
    VNPU_BEAT_US = 20000,             /* how often a holder in company shows that it lives */
    VNPU_LISTEN_US = 30000,           /* so long before its end a turn is listened to, */
    VNPU_QUIET_US = 25000,            /* and a holder that was quiet for so long is not given the next one too */
    VNPU_RELOOK_US = 100000,          /* a stop between a change and its wake-up costs the sleeper so much at most */
    VNPU_COMPANY_US = 1000000,        /* a tenant counts as company so long after it last wanted */
};

#define VNPU_NOBODY UINT32_MAX

struct vnpu_seat {
    struct vnpu_registry *registry;
    uint32_t tenant;
    struct vnpu_mapping mapping; /* of the registry; its descriptor shares the lock of the tenant's workers */
    /* What a waiting tenant saw of the holder, to tell silence from work. */
    uint64_t watched;
    uint32_t beat;
    uint64_t beat_us;
};

static inline uint32_t vnpu_holder(uint64_t turn) {
    return (uint32_t)(turn & VNPU_TURN_HOLDER) - 1;
}

static inline uint64_t vnpu_turn_start(uint64_t turn) {
    return turn >> VNPU_TURN_START_SHIFT;
}

/* Whether a launch may go through the gate. */
static inline bool vnpu_gate_open(uint64_t turn, uint32_t tenant) {
    return (turn & (VNPU_TURN_HOLDER | VNPU_TURN_CLOSING)) == tenant + 1;
}

/* What each tenant may have of the card in percent: its priority, or an equal part of what the priorities leave. */
uint32_t vnpu_weight(const struct vnpu_registry *registry, uint32_t tenant);

/* Time that a tenant held the card. A turn is charged when it ends, and who is alone may have one for long: what has
 * gone by of it counts too. In the moment between the end of a turn and its charge the sum is that turn too small. */
uint64_t vnpu_held_us(const struct vnpu_registry *registry, uint32_t tenant, uint64_t now);

/* This tenant begins to want, at most one turn behind the others; closes a turn that it may interrupt. */
void vnpu_want(struct vnpu_seat *seat, uint64_t now);
/* It has nothing more to do. */
void vnpu_want_no_more(struct vnpu_seat *seat);

/* Does what is due: grants a free card, closes a turn that is over, passes over a holder that is silent. Returns when
 * to look again, at the latest. */
uint64_t vnpu_tend(struct vnpu_seat *seat, uint64_t now);

/* The holder's side: closes its own turn, or ends a closing one that has drained. */
bool vnpu_close(struct vnpu_seat *seat, uint64_t turn);
void vnpu_pass(struct vnpu_seat *seat, uint64_t turn, uint64_t now);
void vnpu_beat(struct vnpu_seat *seat);

/* Whether the tenant's turns end though nobody else wants the card. */
bool vnpu_has_ceiling(const struct vnpu_registry *registry, uint32_t tenant);

/* Whether anybody else wants the card now, and whether anybody wanted it lately. */
bool vnpu_others_want(const struct vnpu_seat *seat);
bool vnpu_in_company(const struct vnpu_seat *seat, uint64_t now);

#endif
