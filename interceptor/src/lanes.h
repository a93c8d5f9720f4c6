/* The streams of this process that carry work: how much is queued ahead on each, and whether it has drained.
 *
 * Each thread has a lane of its own for a stream, so that one alone writes its counters: a launch is counted before the
 * gate is looked at and again when it was handed in, and whoever closes the gate sees every launch that got through.
 *
 * An event ("mark") every few launches tells how far a stream is. The time between two marks estimates how long its
 * launches take; that estimate sizes the window of work queued ahead and nothing else. Events are those of CANN, so
 * what is done here never waits for a stream, and never touches one that captures a graph. */
#ifndef VNPU_LANES_H
#define VNPU_LANES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    VNPU_MARKS = 8,
    VNPU_WINDOW_US = 4000,
    VNPU_WINDOW_ALONE_US = 20000,
    VNPU_WINDOW_MOST = 1024,
    VNPU_LANES_REMEMBERED = 16
};

struct vnpu_mark {
    void *event;
    uint64_t ticket; /* launches before this one are done when the event is */
    uint64_t turn;
    bool busy; /* the mark before it was not done when this one was recorded: the time between them is work */
};

struct vnpu_lane {
    void *stream;
    void *context;
    uint64_t tickets;     /* launches that began, */
    uint64_t finished;    /* and that were handed in */
    uint32_t owned;       /* by a thread that lives */
    uint64_t pace_at;     /* the launch with this ticket looks at the marks */
    pthread_mutex_t lock; /* of the marks: the launching threads */
    struct vnpu_mark marks[VNPU_MARKS];
    struct vnpu_mark last; /* the newest that is done */
    uint32_t first, count;
    uint32_t estimate_ns;
    void *drain; /* event of the helper */
    uint64_t drained, draining;
    struct vnpu_lane *next;
};

struct vnpu_lanes {
    pthread_mutex_t lock; /* of the list, and of the drains */
    struct vnpu_lane *first;
    uint32_t generation; /* of the process: what a thread of a forked child remembers is its parent's */
};

struct vnpu_process;

/* This thread's lane of a stream; NULL when there is no memory for one. */
struct vnpu_lane *vnpu_lane(struct vnpu_process *self, void *stream);
/* A stream that the application destroys. */
void vnpu_lane_end(struct vnpu_process *self, void *stream);

/* Whether what is launched on the stream is recorded into a graph rather than run. */
bool vnpu_lane_captures(void *stream);
/* Waits until less than a window is queued ahead of the next launch. */
void vnpu_lane_pace(struct vnpu_lane *lane, uint64_t turn, uint64_t window_us);

/* The helper's view: how many launches there were in all, and whether they are done on the device. */
uint64_t vnpu_lanes_tickets(struct vnpu_process *self);
bool vnpu_lanes_drained(struct vnpu_process *self);

#endif
