#include "gate.h"

#include <stdio.h>
#include <string.h>

#include "atomics.h"
#include "fault.h"
#include "vnpu/names.h"

enum {
    GRACE_US = 500,         /* idle so long gives the turn back; less starves loops that synchronise */
    IDLE_LOOK_US = 2000,    /* how often a holder with company looks whether it is idle */
    DRAIN_LOOK_US = 100,    /* and a closing one whether it has drained, at first */
    DRAIN_PATIENT_US = 500, /* and after a while */
    LET_THROUGH_US = 30000, /* closed, not drained: own launches may be what the kernels on the cards wait for */
    GANG_LOOK_US = 2000,
    REST_US = 1000000,
};

/* ---- Joining */

const char *vnpu_gate_join(struct vnpu_process *self) {
    struct vnpu_region *region = self->ledger.region;

    for (uint32_t index = 0; index < region->card_count; index++) {
        struct vnpu_mapping mapping;
        char path[sizeof region->registry_dir + 64];
        const struct vnpu_card *card = &region->cards[index];
        uint32_t tenant = vnpu_load(&card->tenant);

        snprintf(path, sizeof path, "%.255s/%u" VNPU_REGISTRY_SUFFIX, region->registry_dir, card->id);
        if (tenant >= VNPU_TENANTS)
            return "its limiter has no place on a card";
        if (vnpu_registry_attach(path, card->id, &mapping) != NULL)
            return "the registry of a card cannot be used";
        vnpu_lock_share(mapping.descriptor, VNPU_LOCK_WORKERS + (off_t)tenant);
        self->seats[index] = (struct vnpu_seat){.registry = mapping.base, .tenant = tenant, .mapping = mapping};
    }
    self->seat_count = region->card_count;
    /* What a forked child's thread remembers of its parent's lanes is of another generation. */
    self->lanes.generation = (uint32_t)vnpu_now_us();
    return NULL;
}

uint32_t *vnpu_gate_bell(struct vnpu_process *self) {
    return &self->seats[0].registry->tenants[self->seats[0].tenant].doors;
}

/* A limiter that was away too long lost its place, and comes back to another. */
static void follow_limiter(struct vnpu_process *self) {
    for (uint32_t index = 0; index < self->seat_count; index++) {
        struct vnpu_seat *seat = &self->seats[index];
        uint32_t tenant = vnpu_load(&self->ledger.region->cards[index].tenant) % VNPU_TENANTS;

        if (tenant == seat->tenant)
            continue;
        if (vnpu_still_open(&seat->mapping))
            vnpu_lock_share(seat->mapping.descriptor, VNPU_LOCK_WORKERS + (off_t)tenant);
        vnpu_store_relaxed(&seat->tenant, tenant);
    }
}

static bool holds(const struct vnpu_seat *seat) {
    return vnpu_holder(vnpu_load(&seat->registry->turn)) == seat->tenant;
}

static bool all_open(const struct vnpu_process *self) {
    for (uint32_t index = 0; index < self->seat_count; index++)
        if (!vnpu_gate_open(vnpu_load(&self->seats[index].registry->turn), self->seats[index].tenant))
            return false;
    return true;
}

/* ---- Launching */

/* Says in the region that this process has work in the turns that it holds; false when one closed meanwhile. */
static bool begin_running(struct vnpu_process *self) {
    for (uint32_t index = 0; index < self->seat_count; index++) {
        uint64_t start = vnpu_turn_start(vnpu_load(&self->seats[index].registry->turn));

        if (vnpu_load_relaxed(&self->running[index]) == start)
            continue;
        vnpu_store(&self->ledger.region->books[index].slots[self->ledger.slot].running, start);
        vnpu_store(&self->running[index], start);
    }
    /* Whoever passes the turn on closed it first and read `running` then: one of us sees the other. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return all_open(self);
}

static bool let_through(struct vnpu_process *self) {
    uint32_t tokens = vnpu_load_relaxed(&self->let_through);

    while (tokens > 0)
        if (vnpu_swap(&self->let_through, &tokens, tokens - 1))
            return true;
    return false;
}

static void count_wait(struct vnpu_process *self, uint64_t waited_us) {
    struct vnpu_card *card = &self->ledger.region->cards[0];
    uint64_t longest = vnpu_load_relaxed(&card->longest_us);

    vnpu_add_relaxed(&card->waits, 1);
    vnpu_add_relaxed(&card->wait_us, waited_us);
    while (waited_us > longest && !vnpu_swap(&card->longest_us, &longest, waited_us))
        ;
}

/* The helper rests while nobody waits, and a holder that is dead or stopped would not wake it. */
static void wake_helper(struct vnpu_process *self) {
    vnpu_add(vnpu_gate_bell(self), 1);
    vnpu_futex_wake_all(vnpu_gate_bell(self));
}

/* False: no limiter for too long. */
static bool wait_for_turn(struct vnpu_process *self) {
    uint64_t begun = vnpu_now_us();
    bool open = false;

    if (vnpu_add(&self->waiting, 1) == 0)
        wake_helper(self);
    for (;;) {
        uint32_t bell = vnpu_load(vnpu_gate_bell(self));
        uint64_t now = vnpu_now_us();
        uint64_t gone = vnpu_load(&self->limiter_gone_us);

        if (gone != 0 && now - gone > VNPU_MILLISECONDS("VNPU_TEST_GONE_MS", VNPU_LIMITER_GONE_MS) * 1000)
            break;
        if (gone == 0 && (open = all_open(self) || vnpu_load(&self->let_through) != 0))
            break;
        if (gone == 0)
            vnpu_want(&self->seats[0], now);
        vnpu_futex_wait(vnpu_gate_bell(self), bell, self->seat_count > 1 ? GANG_LOOK_US : VNPU_RELOOK_US);
    }
    vnpu_add(&self->waiting, (uint32_t)-1);
    count_wait(self, vnpu_now_us() - begun);
    return open;
}

static bool gate_is_open(struct vnpu_process *self) {
    return vnpu_load(&self->limiter_gone_us) == 0 && all_open(self) && begin_running(self);
}

static void pace(struct vnpu_process *self, struct vnpu_lane *lane) {
    uint64_t turn = vnpu_turn_start(vnpu_load(&self->seats[0].registry->turn));
    bool company = vnpu_in_company(&self->seats[0], vnpu_now_us());

    vnpu_lane_pace(lane, turn, company ? VNPU_WINDOW_US : VNPU_WINDOW_ALONE_US);
}

bool vnpu_launch_slowly(struct vnpu_process *self, struct vnpu_lane *lane) {
    /* What a capturing stream is given does not run now; the replay of the graph is the launch that counts. */
    if (vnpu_lane_captures(lane->stream))
        return true;
    /* A launch that waits, for whatever, is none that the helper must wait for. */
    uint64_t ticket = vnpu_add(&lane->tickets, -(uint64_t)1);
    if (ticket >= vnpu_load_relaxed(&lane->pace_at))
        pace(self, lane);
    for (;;) {
        vnpu_add(&lane->tickets, 1);
        if (gate_is_open(self) || let_through(self))
            return true;
        vnpu_add(&lane->tickets, -(uint64_t)1);
        if (!wait_for_turn(self))
            return false;
    }
}

/* ---- The helper's side */

/* Whether another process of this container still has work in this turn, or in one that it went on from. */
static bool siblings_run(struct vnpu_process *self, uint32_t index) {
    struct vnpu_region *region = self->ledger.region;
    uint32_t used = vnpu_load(&region->slots_used);

    for (uint32_t slot = 0; slot < used && slot < VNPU_SLOTS; slot++)
        if (slot != self->ledger.slot && vnpu_owner_lives(vnpu_load(&region->slots[slot].owner)) &&
            vnpu_load(&region->books[index].slots[slot].running) != 0)
            return true;
    return false;
}

static void end_running(struct vnpu_process *self) {
    for (uint32_t index = 0; index < self->seat_count; index++) {
        vnpu_store(&self->running[index], 0);
        vnpu_store(&self->ledger.region->books[index].slots[self->ledger.slot].running, 0);
    }
}

static bool runs(const struct vnpu_process *self) {
    return vnpu_load(&self->running[0]) != 0;
}

static void close_all(struct vnpu_process *self) {
    for (uint32_t index = 0; index < self->seat_count; index++) {
        uint64_t turn = vnpu_load(&self->seats[index].registry->turn);

        if (vnpu_gate_open(turn, self->seats[index].tenant))
            vnpu_close(&self->seats[index], turn);
    }
}

/* The last process that has drained passes the turns on. */
static void pass_all(struct vnpu_process *self, uint64_t now) {
    for (uint32_t index = 0; index < self->seat_count; index++) {
        uint64_t turn = vnpu_load(&self->seats[index].registry->turn);

        if (vnpu_holder(turn) == self->seats[index].tenant && (turn & VNPU_TURN_CLOSING) != 0 &&
            !siblings_run(self, index))
            vnpu_pass(&self->seats[index], turn, now);
    }
}

/* No launch is let through any more, and none that was is still under way. */
static bool drained_for_good(struct vnpu_process *self) {
    if (!vnpu_lanes_drained(self))
        return false;
    if (vnpu_load(&self->let_through) == 0)
        return true;
    vnpu_store(&self->let_through, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return vnpu_lanes_drained(self);
}

/* Shows those who wait that this container lives. */
static void beat(struct vnpu_process *self, uint64_t now) {
    if (now - self->watch.beat_us < VNPU_BEAT_US)
        return;
    for (uint32_t index = 0; index < self->seat_count; index++)
        vnpu_beat(&self->seats[index]);
    self->watch.beat_us = now;
}

static uint64_t drain(struct vnpu_process *self, uint64_t now) {
    struct vnpu_watch *watch = &self->watch;

    if (watch->closing_us == 0)
        watch->closing_us = watch->let_us = now;
    if (!runs(self) || drained_for_good(self)) {
        watch->closing_us = 0;
        end_running(self);
        pass_all(self, now);
        return now + VNPU_BEAT_US;
    }
    beat(self, now);
    if (self->seat_count > 1 && now - watch->let_us >= LET_THROUGH_US) {
        vnpu_store(&self->let_through, 1);
        watch->let_us = now;
    }
    return now + (now - watch->closing_us < VNPU_WINDOW_US * 2 ? DRAIN_LOOK_US : DRAIN_PATIENT_US);
}

static bool anybody_waits(struct vnpu_process *self) {
    return vnpu_load(&self->waiting) != 0;
}

/* With company, a holder that has nothing queued and nothing on the card gives its turn back. */
static uint64_t watch_idle(struct vnpu_process *self, uint64_t now) {
    struct vnpu_watch *watch = &self->watch;
    uint64_t tickets = vnpu_lanes_tickets(self);

    beat(self, now);
    if (tickets != watch->tickets) {
        watch->tickets = tickets;
        watch->idle_us = 0;
        return now + IDLE_LOOK_US;
    }
    if (runs(self) && !vnpu_lanes_drained(self)) {
        watch->idle_us = 0;
        return now + GRACE_US;
    }
    if (watch->idle_us == 0) {
        watch->idle_us = now;
        return now + GRACE_US;
    }
    if (now - watch->idle_us < GRACE_US)
        return watch->idle_us + GRACE_US;
    end_running(self);
    for (uint32_t index = 0; index < self->seat_count; index++) {
        uint64_t turn = vnpu_load(&self->seats[index].registry->turn);

        if (!vnpu_gate_open(turn, self->seats[index].tenant) || siblings_run(self, index))
            continue;
        vnpu_want_no_more(&self->seats[index]);
        vnpu_close(&self->seats[index], turn);
    }
    return now;
}

/* Card after card in the order of their numbers, so that two containers never hold what the other waits for. */
static void want_in_order(struct vnpu_process *self, uint64_t now) {
    bool before = true;

    for (uint32_t index = 0; index < self->seat_count; index++) {
        struct vnpu_seat *seat = &self->seats[index];
        uint64_t turn = vnpu_load(&seat->registry->turn);
        bool held = vnpu_holder(turn) == seat->tenant;

        if (before && !held && anybody_waits(self)) {
            vnpu_want(seat, now);
        } else if (!before) {
            vnpu_want_no_more(seat);
            if (held && !runs(self) && vnpu_gate_open(turn, seat->tenant))
                vnpu_close(seat, turn);
        }
        before = before && held;
    }
}

uint64_t vnpu_gate_tend(struct vnpu_process *self, uint64_t now) {
    uint64_t next = now + REST_US;
    bool holding = false;
    bool closing = false;
    bool company = false;

    if (vnpu_load(&self->limiter_gone_us) != 0)
        follow_limiter(self);
    if (self->seat_count > 1)
        want_in_order(self, now);
    for (uint32_t index = 0; index < self->seat_count; index++) {
        struct vnpu_seat *seat = &self->seats[index];
        bool others = vnpu_others_want(seat);

        if (anybody_waits(self) || (holds(seat) && (others || vnpu_has_ceiling(seat->registry, seat->tenant)))) {
            uint64_t look = vnpu_tend(seat, now);

            next = look < next ? look : next;
        }
        uint64_t turn = vnpu_load(&seat->registry->turn);
        holding |= vnpu_holder(turn) == seat->tenant;
        closing |= vnpu_holder(turn) == seat->tenant && (turn & VNPU_TURN_CLOSING) != 0;
        company |= others;
    }
    uint64_t look = next;
    if (closing) {
        close_all(self);
        look = drain(self, now);
    } else if (holding && company) {
        self->watch.closing_us = 0;
        look = watch_idle(self, now);
    }
    if (self->seat_count > 1 && anybody_waits(self))
        look = look < now + GANG_LOOK_US ? look : now + GANG_LOOK_US;
    return look < next ? look : next;
}
