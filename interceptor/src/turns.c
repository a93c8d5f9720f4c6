#include "turns.h"

#include "atomics.h"
#include "fault.h"
#include "prim.h"

static struct vnpu_tenant *tenant_of(const struct vnpu_registry *registry, uint32_t tenant) {
    return (struct vnpu_tenant *)&registry->tenants[tenant];
}

static bool lives(const struct vnpu_tenant *tenant) {
    return vnpu_load_relaxed(&tenant->key) != 0;
}

static bool wants(const struct vnpu_tenant *tenant) {
    return lives(tenant) && vnpu_load(&tenant->wants) != 0;
}

static uint32_t priority_of(const struct vnpu_tenant *tenant) {
    uint32_t weight = vnpu_load_relaxed(&tenant->weight);

    return weight > 100 ? 100 : weight;
}

uint32_t vnpu_weight(const struct vnpu_registry *registry, uint32_t tenant) {
    uint32_t own = priority_of(tenant_of(registry, tenant));
    uint32_t sum = 0;
    uint32_t without = 0;

    if (own != 0)
        return own;
    for (uint32_t index = 0; index < VNPU_TENANTS; index++) {
        const struct vnpu_tenant *other = tenant_of(registry, index);

        if (!lives(other))
            continue;
        sum += priority_of(other);
        without += priority_of(other) == 0;
    }
    uint32_t left = sum < 100 && without > 0 ? (100 - sum) / without : 0;
    return left > 0 ? left : 1;
}

bool vnpu_has_ceiling(const struct vnpu_registry *registry, uint32_t tenant) {
    return (vnpu_load_relaxed(&tenant_of(registry, tenant)->flags) & VNPU_CEILING) != 0;
}

/* Virtual time of a tenant at `now`, counting what it has run up in the turn that it holds. */
static uint64_t virtual_time(const struct vnpu_registry *registry, uint64_t turn, uint32_t tenant, uint64_t now) {
    uint64_t time = vnpu_load_relaxed(&tenant_of(registry, tenant)->virtual_us);

    if (vnpu_holder(turn) == tenant && now > vnpu_turn_start(turn))
        time += (now - vnpu_turn_start(turn)) * 100 / vnpu_weight(registry, tenant);
    return time;
}

/* Weights of all who share the card now: those who want it, and its holder. */
static uint64_t weights_at_work(const struct vnpu_registry *registry, uint64_t turn) {
    uint64_t sum = 0;

    for (uint32_t index = 0; index < VNPU_TENANTS; index++)
        if (wants(tenant_of(registry, index)) || vnpu_holder(turn) == index)
            sum += vnpu_weight(registry, index);
    return sum > 0 ? sum : 1;
}

static uint64_t quantum(const struct vnpu_registry *registry, uint64_t turn, uint32_t tenant) {
    uint64_t whole = vnpu_has_ceiling(registry, tenant) ? 100 : weights_at_work(registry, turn);
    uint64_t time = (uint64_t)VNPU_PERIOD_US * vnpu_weight(registry, tenant) / whole;

    return time > VNPU_TURN_LEAST_US ? time : VNPU_TURN_LEAST_US;
}

static void ring(struct vnpu_registry *registry, uint32_t tenant) {
    struct vnpu_tenant *rung = tenant_of(registry, tenant);

    vnpu_add(&rung->doors, 1);
    vnpu_futex_wake_all(&rung->doors);
}

/* The turn is over: its time is charged by whoever won the transition. */
static void charge(struct vnpu_registry *registry, uint64_t turn, uint64_t now) {
    uint32_t holder = vnpu_holder(turn);
    uint64_t start = vnpu_turn_start(turn);

    if (holder >= VNPU_TENANTS || now <= start)
        return;
    struct vnpu_tenant *tenant = tenant_of(registry, holder);
    uint64_t weighted = (now - start) * 100 / vnpu_weight(registry, holder);

    vnpu_add(&tenant->held_us, now - start);
    vnpu_add(&tenant->virtual_us, weighted);
    if (vnpu_has_ceiling(registry, holder)) {
        uint64_t arrival = vnpu_load_relaxed(&tenant->arrival_us);
        /* A turn that began late, as each does a little, is not lost; more than one period is not caught up with. */
        uint64_t earliest = start > VNPU_PERIOD_US ? start - VNPU_PERIOD_US : 0;

        vnpu_store_relaxed(&tenant->arrival_us, (arrival > earliest ? arrival : earliest) + weighted);
    }
}

uint64_t vnpu_held_us(const struct vnpu_registry *registry, uint32_t tenant, uint64_t now) {
    uint64_t turn = vnpu_load(&registry->turn);
    uint64_t held = vnpu_load_relaxed(&registry->tenants[tenant].held_us);
    uint64_t start = vnpu_turn_start(turn);
    bool goes_on = vnpu_holder(turn) == tenant && turn == vnpu_load(&registry->turn);

    return goes_on && now > start ? held + now - start : held;
}

/* A ceiling holds whoever else is there: before its time a tenant waits, though the card be idle. */
static bool may_start(const struct vnpu_registry *registry, uint64_t turn, uint32_t tenant, uint64_t now) {
    if (!vnpu_has_ceiling(registry, tenant))
        return true;
    return vnpu_holder(turn) != tenant && vnpu_load_relaxed(&tenant_of(registry, tenant)->arrival_us) <= now;
}

static uint32_t next_in_turn(const struct vnpu_registry *registry, uint64_t turn, uint32_t except, uint64_t now) {
    uint32_t next = VNPU_NOBODY;
    uint64_t least = UINT64_MAX;

    for (uint32_t index = 0; index < VNPU_TENANTS; index++) {
        if (index == except || !wants(tenant_of(registry, index)) || !may_start(registry, turn, index, now))
            continue;
        uint64_t time = virtual_time(registry, turn, index, now);
        if (time < least) {
            least = time;
            next = index;
        }
    }
    return next;
}

/* Ends `turn` in favour of `next`; false when somebody else was faster. */
static bool hand_over(struct vnpu_registry *registry, uint64_t turn, uint32_t next, uint64_t now) {
    uint64_t seen = turn;
    /* The start is the serial number: it grows even when the clock does not. */
    uint64_t start = now > vnpu_turn_start(turn) ? now : vnpu_turn_start(turn) + 1;
    uint64_t wanted = next == VNPU_NOBODY ? 0 : start << VNPU_TURN_START_SHIFT | (next + 1);

    if (!vnpu_swap(&registry->turn, &seen, wanted))
        return false;
    VNPU_FAULT("handed-over");
    charge(registry, turn, now);
    if (next != VNPU_NOBODY)
        ring(registry, next);
    return true;
}

static bool close_turn(struct vnpu_registry *registry, uint64_t turn) {
    uint64_t seen = turn;

    if (!vnpu_swap(&registry->turn, &seen, turn | VNPU_TURN_CLOSING))
        return false;
    VNPU_FAULT("closed");
    ring(registry, vnpu_holder(turn));
    return true;
}

/* ---- Wanting */

static uint64_t least_of_others(const struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    uint64_t least = UINT64_MAX;

    for (uint32_t index = 0; index < VNPU_TENANTS; index++) {
        const struct vnpu_tenant *other = tenant_of(seat->registry, index);

        if (index == seat->tenant || !(wants(other) || (vnpu_holder(turn) == index && lives(other))))
            continue;
        uint64_t time = virtual_time(seat->registry, turn, index, now);
        least = time < least ? time : least;
    }
    return least;
}

/* Who was alone or away neither owes nor is owed more than one turn. */
static void join_queue(struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    struct vnpu_tenant *self = tenant_of(seat->registry, seat->tenant);
    uint64_t least = least_of_others(seat, turn, now);
    uint64_t own = vnpu_load_relaxed(&self->virtual_us);
    uint64_t behind = (uint64_t)VNPU_PERIOD_US * 100 / weights_at_work(seat->registry, turn);

    if (least != UINT64_MAX && least > behind && own < least - behind)
        vnpu_swap(&self->virtual_us, &own, least - behind);
}

static bool may_interrupt(const struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    uint32_t holder = vnpu_holder(turn);

    if (holder >= VNPU_TENANTS || holder == seat->tenant || (turn & VNPU_TURN_CLOSING) != 0)
        return false;
    uint64_t lead = (uint64_t)VNPU_PREEMPT_US * 100 / vnpu_weight(seat->registry, holder);
    return virtual_time(seat->registry, turn, seat->tenant, now) + lead <
           virtual_time(seat->registry, turn, holder, now);
}

void vnpu_want(struct vnpu_seat *seat, uint64_t now) {
    struct vnpu_registry *registry = seat->registry;
    struct vnpu_tenant *self = tenant_of(registry, seat->tenant);
    uint32_t before = 0;
    uint64_t turn = vnpu_load_ordered(&registry->turn);

    vnpu_store_relaxed(&self->wanted_us, now);
    if (vnpu_load(&self->wants) != 0)
        return;
    join_queue(seat, turn, now);
    if (!vnpu_swap(&self->wants, &before, 1))
        return;
    if (may_interrupt(seat, turn, now))
        close_turn(registry, turn);
    else if (vnpu_holder(turn) < VNPU_TENANTS)
        ring(registry, vnpu_holder(turn)); /* it may be idle, and has company now */
    ring(registry, seat->tenant);
}

void vnpu_want_no_more(struct vnpu_seat *seat) {
    vnpu_store(&tenant_of(seat->registry, seat->tenant)->wants, 0);
}

bool vnpu_others_want(const struct vnpu_seat *seat) {
    for (uint32_t index = 0; index < VNPU_TENANTS; index++)
        if (index != seat->tenant && wants(tenant_of(seat->registry, index)))
            return true;
    return false;
}

bool vnpu_in_company(const struct vnpu_seat *seat, uint64_t now) {
    for (uint32_t index = 0; index < VNPU_TENANTS; index++) {
        const struct vnpu_tenant *other = tenant_of(seat->registry, index);

        if (index != seat->tenant && lives(other) &&
            (wants(other) || vnpu_load_relaxed(&other->wanted_us) + VNPU_COMPANY_US > now))
            return true;
    }
    return false;
}

/* ---- Tending */

static uint64_t tend_free(struct vnpu_seat *seat, uint64_t now) {
    uint32_t next = next_in_turn(seat->registry, 0, VNPU_NOBODY, now);
    const struct vnpu_tenant *self = tenant_of(seat->registry, seat->tenant);

    if (next != VNPU_NOBODY)
        hand_over(seat->registry, 0, next, now);
    else if (wants(self) && vnpu_has_ceiling(seat->registry, seat->tenant))
        return vnpu_load_relaxed(&self->arrival_us);
    return now + VNPU_RELOOK_US;
}

/* Whether the kernel says that no process of a tenant is left. Where it cannot be asked, silence will tell. */
static bool is_dead(const struct vnpu_seat *seat, uint32_t tenant) {
    return tenant != seat->tenant && seat->mapping.base != NULL && vnpu_still_open(&seat->mapping) &&
           !vnpu_lock_held(seat->mapping.descriptor, VNPU_LOCK_WORKERS + (off_t)tenant);
}

/* How long the holder's beat has stood still: it is stopped, or dead where the kernel does not say so. */
static uint64_t silence(struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    uint32_t beat = vnpu_load(&tenant_of(seat->registry, vnpu_holder(turn))->beat);
    bool closed_now = seat->watched != turn && (seat->watched | VNPU_TURN_CLOSING) == turn;

    if ((seat->watched != turn && !closed_now) || seat->beat != beat)
        seat->beat_us = now;
    else if (closed_now && seat->beat_us < now - VNPU_BEAT_US)
        /* What it did not do before counts little: on a busy machine its helper may just have been rung awake. */
        seat->beat_us = now - VNPU_BEAT_US;
    seat->watched = turn;
    seat->beat = beat;
    return now - seat->beat_us;
}

static uint64_t sooner(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static uint64_t tend_closing(struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    uint32_t holder = vnpu_holder(turn);
    uint64_t start = vnpu_turn_start(turn);

    if (holder == seat->tenant)
        return now + VNPU_BEAT_US;
    bool endless = now > start && now - start > VNPU_DRAIN_LONGEST_US + VNPU_PERIOD_US;
    if (silence(seat, turn, now) < VNPU_SILENCE_US && !endless && !is_dead(seat, holder))
        return sooner(seat->beat_us + VNPU_SILENCE_US, now + VNPU_BEAT_US);
    /* Its living processes ask again. */
    vnpu_store(&tenant_of(seat->registry, holder)->wants, 0);
    if (hand_over(seat->registry, turn, next_in_turn(seat->registry, turn, holder, now), now))
        ring(seat->registry, holder);
    return now;
}

/* Whether the holder goes on after the end of its turn, so that nothing has to drain: it is still the one that is
 * furthest behind, and it shows that it lives. */
static bool goes_on(struct vnpu_seat *seat, uint64_t turn, uint64_t quiet_us, uint64_t now) {
    uint32_t holder = vnpu_holder(turn);

    return next_in_turn(seat->registry, turn, VNPU_NOBODY, now) == holder && quiet_us < VNPU_QUIET_US &&
           !is_dead(seat, holder);
}

static uint64_t tend_open(struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    uint32_t holder = vnpu_holder(turn);
    uint64_t end = vnpu_turn_start(turn) + quantum(seat->registry, turn, holder);
    uint64_t quiet_us = holder == seat->tenant ? 0 : silence(seat, turn, now);

    /* Alone, a turn has no end, unless there is a ceiling. */
    if (!vnpu_has_ceiling(seat->registry, holder) && next_in_turn(seat->registry, turn, holder, now) == VNPU_NOBODY)
        return now + VNPU_RELOOK_US;
    if (now < end && (wants(tenant_of(seat->registry, holder)) || holder == seat->tenant))
        return sooner(now + VNPU_LISTEN_US < end ? end - VNPU_LISTEN_US : end, now + VNPU_RELOOK_US);
    if (goes_on(seat, turn, quiet_us, now))
        hand_over(seat->registry, turn, holder, now);
    else
        close_turn(seat->registry, turn);
    return now;
}

uint64_t vnpu_tend(struct vnpu_seat *seat, uint64_t now) {
    uint64_t turn = vnpu_load_ordered(&seat->registry->turn);
    uint32_t holder = vnpu_holder(turn);

    if (holder < VNPU_TENANTS && vnpu_turn_start(turn) <= now + VNPU_PERIOD_US)
        return (turn & VNPU_TURN_CLOSING) != 0 ? tend_closing(seat, turn, now) : tend_open(seat, turn, now);
    if (turn != 0 && !hand_over(seat->registry, turn, VNPU_NOBODY, now))
        return now;
    return tend_free(seat, now);
}

bool vnpu_close(struct vnpu_seat *seat, uint64_t turn) {
    return close_turn(seat->registry, turn);
}

void vnpu_pass(struct vnpu_seat *seat, uint64_t turn, uint64_t now) {
    VNPU_FAULT("passing");
    uint32_t next = next_in_turn(seat->registry, turn, VNPU_NOBODY, now);

    hand_over(seat->registry, turn, next, now);
}

void vnpu_beat(struct vnpu_seat *seat) {
    vnpu_add(&tenant_of(seat->registry, seat->tenant)->beat, 1);
}
