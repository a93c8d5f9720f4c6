#include "lanes.h"

#include <stdlib.h>

#include "atomics.h"
#include "prim.h"
#include "process.h"
#include "real.h"
#include "turns.h"

enum { EVENT_DONE = 1, CAPTURING = 1, POLL_MS = 20, CLAMP_NS = 1000000000 };

static char no_stream;
#define NO_STREAM ((void *)&no_stream)

/* The functions of CANN that this needs; without them launches are not paced, and turns end by their deadline alone. */
static struct {
    int (*event_create)(void **event);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_status)(void *event, int *status);
    int (*event_wait)(void *event, int32_t milliseconds);
    int (*event_elapsed)(float *milliseconds, void *start, void *end);
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*capture_info)(void *stream, int *status, void **model);
} cann;

static void *of_runtime(const char *runtime_name, const char *acl_name) {
    void *found = vnpu_foreign(RT, runtime_name);

    return found != NULL ? found : vnpu_foreign(ACL, acl_name);
}

static void find_functions(void) {
    cann.event_create = (int (*)(void **))of_runtime("rtEventCreate", "aclrtCreateEvent");
    cann.event_destroy = (int (*)(void *))of_runtime("rtEventDestroy", "aclrtDestroyEvent");
    cann.event_record = (int (*)(void *, void *))of_runtime("rtEventRecord", "aclrtRecordEvent");
    cann.event_status = (int (*)(void *, int *))of_runtime("rtEventQueryStatus", "aclrtQueryEventStatus");
    cann.event_wait =
        (int (*)(void *, int32_t))of_runtime("rtEventSynchronizeWithTimeout", "aclrtSynchronizeEventWithTimeout");
    cann.event_elapsed = (int (*)(float *, void *, void *))of_runtime("rtEventElapsedTime", "aclrtEventElapsedTime");
    cann.context_get = (int (*)(void **))of_runtime("rtCtxGetCurrent", "aclrtGetCurrentContext");
    cann.context_set = (int (*)(void *))of_runtime("rtCtxSetCurrent", "aclrtSetCurrentContext");
    cann.capture_info = (int (*)(void *, int *, void **))of_runtime("rtStreamGetCaptureInfo", "aclmdlRICaptureGetInfo");
}

static bool can_mark(void) {
    return cann.event_create != NULL && cann.event_record != NULL && cann.event_status != NULL;
}

/* ---- The list */

static void *current_context(void) {
    void *context = NULL;

    return cann.context_get != NULL && cann.context_get(&context) == 0 ? context : NULL;
}

/* The lane of a thread that ended, or any that is free for another stream. */
static struct vnpu_lane *find_free(struct vnpu_lanes *lanes, void *stream, void *context) {
    struct vnpu_lane *spare = NULL;

    for (struct vnpu_lane *lane = lanes->first; lane != NULL; lane = lane->next) {
        if (vnpu_load(&lane->owned))
            continue;
        if (lane->stream == stream && lane->context == context)
            return lane;
        if (lane->stream == NO_STREAM)
            spare = lane;
    }
    return spare;
}

/* What a thread remembers: its lanes, the one used last in front. */
struct memory {
    struct vnpu_process *process;
    uint32_t generation;
    uint32_t count;
    struct vnpu_lane *lanes[VNPU_LANES_REMEMBERED];
};

static __thread struct memory memory;
static pthread_key_t at_thread_end;

/* A thread that ends leaves its lanes to the next one that comes. */
static void disown(void *argument) {
    struct memory *ended = argument;

    pthread_mutex_lock(&ended->process->lanes.lock);
    if (ended->generation == ended->process->lanes.generation)
        for (uint32_t index = 0; index < ended->count; index++)
            vnpu_store(&ended->lanes[index]->owned, 0);
    pthread_mutex_unlock(&ended->process->lanes.lock);
}

static void prepare(void) {
    pthread_key_create(&at_thread_end, disown);
    find_functions();
}

static struct vnpu_lane *find_or_make(struct vnpu_process *self, void *stream, void *context) {
    struct vnpu_lanes *lanes = &self->lanes;

    pthread_mutex_lock(&lanes->lock);
    struct vnpu_lane *lane = find_free(lanes, stream, context);
    if (lane == NULL && (lane = calloc(1, sizeof *lane)) != NULL) {
        lane->next = lanes->first;
        lanes->first = lane;
    }
    if (lane != NULL) {
        lane->context = context;
        vnpu_store(&lane->stream, stream);
        vnpu_store(&lane->owned, 1);
    }
    pthread_mutex_unlock(&lanes->lock);
    return lane;
}

/* The first thread that needs them finds the functions; a generation says which of what a thread remembers still holds.
 */
static void remember_nothing(struct vnpu_process *self, uint32_t generation) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, prepare);
    memory = (struct memory){.process = self, .generation = generation};
    pthread_setspecific(at_thread_end, &memory);
}

static struct vnpu_lane *recall(struct vnpu_process *self, void *stream) {
    void *context = stream == NULL ? current_context() : NULL;
    uint32_t index = 0;

    while (index < memory.count && (vnpu_load(&memory.lanes[index]->stream) != stream ||
                                    (stream == NULL && memory.lanes[index]->context != context)))
        index++;
    if (index == memory.count) {
        struct vnpu_lane *lane = find_or_make(self, stream, current_context());

        if (lane == NULL)
            return NULL;
        if (index == VNPU_LANES_REMEMBERED) {
            index--;
            vnpu_store(&memory.lanes[index]->owned, 0);
        }
        memory.lanes[index] = lane;
        memory.count = index + 1;
    }
    struct vnpu_lane *found = memory.lanes[index];
    memory.lanes[index] = memory.lanes[0];
    memory.lanes[0] = found;
    return found;
}

struct vnpu_lane *vnpu_lane(struct vnpu_process *self, void *stream) {
    uint32_t generation = vnpu_load_relaxed(&self->lanes.generation);

    if (memory.generation != generation || memory.process != self)
        remember_nothing(self, generation);
    /* The default stream is another one in each context. */
    if (stream != NULL && memory.count > 0 && vnpu_load_relaxed(&memory.lanes[0]->stream) == stream)
        return memory.lanes[0];
    return recall(self, stream);
}

static void destroy_event(void **event) {
    if (*event != NULL && cann.event_destroy != NULL)
        cann.event_destroy(*event);
    *event = NULL;
}

/* The lane stays where its thread remembers it, and serves another stream later. */
void vnpu_lane_end(struct vnpu_process *self, void *stream) {
    pthread_mutex_lock(&self->lanes.lock);
    for (struct vnpu_lane *lane = self->lanes.first; lane != NULL; lane = lane->next) {
        if (stream == NULL || lane->stream != stream)
            continue;
        for (uint32_t index = 0; index < VNPU_MARKS; index++)
            destroy_event(&lane->marks[index].event);
        destroy_event(&lane->last.event);
        destroy_event(&lane->drain);
        lane->count = 0;
        lane->estimate_ns = 0;
        vnpu_store(&lane->pace_at, 0);
        vnpu_store(&lane->stream, NO_STREAM);
    }
    pthread_mutex_unlock(&self->lanes.lock);
}

bool vnpu_lane_captures(void *stream) {
    int status = 0;
    void *model = NULL;

    return cann.capture_info != NULL && cann.capture_info(stream, &status, &model) == 0 && status == CAPTURING;
}

/* ---- Pacing */

static bool done(void *event) {
    int status = EVENT_DONE;

    /* An event that cannot be asked must not hold anybody up. */
    return cann.event_status(event, &status) != 0 || status == EVENT_DONE;
}

static void learn(struct vnpu_lane *lane, const struct vnpu_mark *mark, uint32_t ahead) {
    float milliseconds;

    /* Time that the card was not ours says nothing about how long a launch takes. */
    if (lane->last.event == NULL || mark->turn != lane->last.turn || mark->ticket <= lane->last.ticket ||
        cann.event_elapsed == NULL || cann.event_elapsed(&milliseconds, lane->last.event, mark->event) != 0)
        return;
    double each = (double)milliseconds * 1e6 / (double)(mark->ticket - lane->last.ticket);
    uint32_t sample = each < 1000 ? 1000 : each > CLAMP_NS ? CLAMP_NS : (uint32_t)each;
    if (sample <= lane->estimate_ns)
        lane->estimate_ns -= (lane->estimate_ns - sample) / 4;
    else if (mark->busy || ahead == 1)
        lane->estimate_ns = sample;
    /* Otherwise the card stood idle in between: that is the most that a launch takes, and no reason to think so. */
}

static uint32_t window(const struct vnpu_lane *lane, uint64_t window_us) {
    uint64_t count;

    /* The first launch goes alone: it may take a second. */
    if (lane->estimate_ns == 0)
        return 1;
    count = 1 + (window_us * 1000 + lane->estimate_ns / 2) / lane->estimate_ns;
    return count < VNPU_WINDOW_MOST ? (uint32_t)count : VNPU_WINDOW_MOST;
}

static void harvest(struct vnpu_lane *lane, uint32_t ahead) {
    while (lane->count > 0 && done(lane->marks[lane->first].event)) {
        struct vnpu_mark *mark = &lane->marks[lane->first];
        void *spare = lane->last.event;

        learn(lane, mark, ahead);
        lane->last = *mark;
        mark->event = spare;
        lane->first = (lane->first + 1) % VNPU_MARKS;
        lane->count--;
    }
}

static void record(struct vnpu_lane *lane, uint64_t ticket, uint64_t turn) {
    struct vnpu_mark *mark = &lane->marks[(lane->first + lane->count) % VNPU_MARKS];

    if (mark->event == NULL && cann.event_create(&mark->event) != 0) {
        mark->event = NULL;
        return;
    }
    if (cann.event_record(mark->event, lane->stream) != 0)
        return;
    mark->ticket = ticket;
    mark->turn = turn;
    mark->busy = lane->count > 0;
    lane->count++;
}

/* No longer than the others can have kept the card, and what is queued here can take. */
static void wait_for_oldest(struct vnpu_lane *lane, uint64_t deadline) {
    void *event = lane->marks[lane->first].event;

    while (!done(event) && vnpu_now_us() < deadline) {
        if (cann.event_wait != NULL)
            cann.event_wait(event, POLL_MS);
        else
            vnpu_sleep_us(100);
    }
}

void vnpu_lane_pace(struct vnpu_lane *lane, uint64_t turn, uint64_t window_us) {
    uint64_t ticket = vnpu_load_relaxed(&lane->tickets) + 1;

    if (!can_mark())
        return;
    pthread_mutex_lock(&lane->lock);
    uint32_t ahead = window(lane, window_us);
    harvest(lane, ahead);
    if (lane->count == VNPU_MARKS)
        wait_for_oldest(lane, vnpu_now_us() + VNPU_PERIOD_US);
    harvest(lane, ahead);
    if (lane->count < VNPU_MARKS)
        record(lane, ticket, turn);
    ahead = window(lane, window_us);
    uint64_t deadline = vnpu_now_us() + 2 * (uint64_t)VNPU_PERIOD_US + 4 * (uint64_t)lane->estimate_ns / 1000;
    while (lane->count > 0 && lane->last.ticket + ahead <= ticket && vnpu_now_us() < deadline) {
        wait_for_oldest(lane, deadline);
        harvest(lane, ahead);
        ahead = window(lane, window_us);
    }
    vnpu_store_relaxed(&lane->pace_at, ticket + (ahead > 4 ? ahead / 4 : 1));
    pthread_mutex_unlock(&lane->lock);
}

/* ---- Draining */

uint64_t vnpu_lanes_tickets(struct vnpu_process *self) {
    uint64_t sum = 0;

    pthread_mutex_lock(&self->lanes.lock);
    for (const struct vnpu_lane *lane = self->lanes.first; lane != NULL; lane = lane->next)
        sum += vnpu_load_relaxed(&lane->tickets);
    pthread_mutex_unlock(&self->lanes.lock);
    return sum;
}

static bool lane_drained(struct vnpu_lane *lane) {
    uint64_t tickets = vnpu_load_ordered(&lane->tickets);

    if (vnpu_load(&lane->finished) != tickets)
        return false;
    if (lane->drained == tickets || lane->stream == NO_STREAM)
        return true;
    if (cann.context_set != NULL && lane->context != NULL && cann.context_set(lane->context) != 0)
        return true; /* the context is gone, and all work with it */
    if (vnpu_lane_captures(lane->stream))
        return true;
    if (lane->draining != tickets) {
        if ((lane->drain == NULL && cann.event_create(&lane->drain) != 0) ||
            cann.event_record(lane->drain, lane->stream) != 0)
            return true;
        lane->draining = tickets;
    }
    if (!done(lane->drain))
        return false;
    lane->drained = lane->draining;
    return lane->drained == vnpu_load(&lane->tickets);
}

bool vnpu_lanes_drained(struct vnpu_process *self) {
    bool all = true;

    if (!can_mark())
        return true;
    pthread_mutex_lock(&self->lanes.lock);
    for (struct vnpu_lane *lane = self->lanes.first; lane != NULL; lane = lane->next)
        all &= lane_drained(lane);
    pthread_mutex_unlock(&self->lanes.lock);
    return all;
}
