/* The gate before every launch: open while this container has its turn on all its cards. */
#ifndef VNPU_GATE_H
#define VNPU_GATE_H

#include <stdbool.h>

#include "atomics.h"
#include "process.h"

/* Waits for the turn, and for room in the window. False: there is no limiter, and the launch must fail. */
bool vnpu_launch_slowly(struct vnpu_process *self, struct vnpu_lane *lane);

/* The fast way: a turn in hand, and no mark due. One atomic operation and four loads. The lane says that a launch is
 * under way before it looks at the gate: whoever closes the gate and then looks at the lane sees it, or it sees them.
 */
static inline bool vnpu_launch(struct vnpu_process *self, struct vnpu_lane *lane) {
    uint64_t ticket = vnpu_add(&lane->tickets, 1) + 1;
    uint64_t turn = vnpu_load(&self->seats[0].registry->turn);

    if (self->seat_count == 1 && vnpu_gate_open(turn, self->seats[0].tenant) &&
        vnpu_load_relaxed(&self->running[0]) == vnpu_turn_start(turn) && ticket < vnpu_load_relaxed(&lane->pace_at))
        return true;
    return vnpu_launch_slowly(self, lane);
}

/* It was handed in. */
static inline void vnpu_launched(struct vnpu_lane *lane) {
    vnpu_store(&lane->finished, vnpu_load_relaxed(&lane->tickets));
}

/* The helper's side. Both return when to come back at the latest. */
uint64_t vnpu_gate_tend(struct vnpu_process *self, uint64_t now);

/* What the helper sleeps on: moves with every change that concerns this container. */
uint32_t *vnpu_gate_bell(struct vnpu_process *self);

/* Finds this container's seat on each card. NULL, or one line of reason. */
const char *vnpu_gate_join(struct vnpu_process *self);

#endif
