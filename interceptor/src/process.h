/* This process as a user of the NPU: nothing until its first NPU call, then a slot in the region of its container. */
#ifndef VNPU_PROCESS_H
#define VNPU_PROCESS_H

#include "attach.h"
#include "books.h"
#include "lanes.h"
#include "slots.h"
#include "track.h"
#include "turns.h"

enum vnpu_phase {
    VNPU_NEW, /* must be 0: what a forked child finds */
    VNPU_STARTING,
    VNPU_READY,
    VNPU_DENIED, /* no limiter came, and every call is answered with an error */
};

struct vnpu_pool;

/* What the helper remembers between two looks, in microseconds; 0 for never. */
struct vnpu_watch {
    uint64_t closing_us;
    uint64_t beat_us;
    uint64_t let_us;
    uint64_t tickets;
    uint64_t idle_us;
};

/* All that a forked child must not inherit. It lies on pages that the kernel hands to a child empty. */
struct vnpu_process {
    uint32_t phase; /* futex */
    /* The driver's calls reach us, so the layers above need not count: they all end there. */
    uint32_t driver_seen;
    struct vnpu_attached attached;
    char path[VNPU_PATH_LIMIT];
    struct vnpu_ledger ledger;
    struct vnpu_vow vow;
    struct vnpu_tracker tracker;
    struct vnpu_pool *pools;
    pthread_mutex_t pools_lock;
    uint64_t limiter_gone_us; /* when the limiter was first found dead, 0 while it lives */
    /* Turns: this container's seat on each card, and the turn in which this process has work there, 0 for none. */
    struct vnpu_seat seats[VNPU_CARDS];
    uint32_t seat_count;
    uint64_t running[VNPU_CARDS];
    struct vnpu_lanes lanes;
    uint32_t waiting;     /* launches before the gate */
    uint32_t let_through; /* that may pass it though it is closed */
    struct vnpu_watch watch;
};

/* Joins at the first call, waiting for the limiter; NULL when every call is to be answered with an error. */
struct vnpu_process *vnpu_enter(void);

/* How deep this thread is in calls of ours: what a hooked function calls itself is part of it, and counts once. */
extern __thread unsigned int vnpu_depth;

/* One line on standard error. */
void vnpu_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
