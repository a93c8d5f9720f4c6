#include "../card/file.h"
#include "../card/schedule.h"
#include "driver.h"

#include <stdlib.h>
#include <time.h>

/* How long a waiter sleeps at most before it looks again: work that is handed in meanwhile, and owners that die, change
 * what it waits for. */
#define LOOK_AGAIN_NS 5000000ull

struct npu_sim_queue {
    pthread_mutex_t lock; /* one at a time hands in */
    uint32_t id;
    uint64_t next; /* number of the entry to be written next */
    uint64_t done; /* everything below it was done when last looked */
};

int npu_sim_queue_open(uint32_t card, struct npu_sim_queue **queue) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !driver_sees(d, card))
        return DRV_INVALID_DEVICE;
    struct npu_sim_queue *made = calloc(1, sizeof *made);
    if (!made || !sim_schedule_open(self, card, &made->id, &made->next)) {
        free(made);
        return DRV_NO_DEVICE;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->done = made->next;
    *queue = made;
    return 0;
}

void npu_sim_queue_close(struct npu_sim_queue *queue) {
    struct sim_self *self;
    if (driver(&self))
        sim_schedule_close(self, queue->id);
    free(queue);
}

uint32_t npu_sim_queue_id(const struct npu_sim_queue *queue) {
    return queue->id;
}

static void sleep_until(uint64_t when) {
    uint64_t latest = sim_now() + LOOK_AGAIN_NS;
    if (when > latest)
        when = latest;
    struct timespec ts = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Waits until entry `seq` is done and returns the number of the next one to be done, which is lower at the deadline. */
static uint64_t wait_for(struct sim_self *self, uint32_t id, uint64_t seq, uint64_t deadline) {
    for (;;) {
        uint64_t when;
        uint64_t next = sim_schedule_next(self, id, seq, &when);
        if (next > seq || sim_now() >= deadline)
            return next;
        sleep_until(when < deadline ? when : deadline);
    }
}

static void make_room(struct sim_self *self, struct npu_sim_queue *queue, uint32_t depth) {
    if (queue->next - queue->done >= depth)
        queue->done = wait_for(self, queue->id, queue->next - depth, UINT64_MAX);
}

static void set(_Atomic uint64_t *word, uint64_t value) {
    atomic_store_explicit(word, value, memory_order_relaxed);
}

uint64_t npu_sim_submit(struct npu_sim_queue *queue, const struct npu_sim_task *task) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d)
        return 0;
    pthread_mutex_lock(&queue->lock);
    make_room(self, queue, d->depth);
    uint64_t seq = queue->next++;
    struct sim_entry *entry = &self->state->rings[queue->id][seq % NPU_SIM_QUEUE];
    set(&entry->kind, task->kind);
    set(&entry->a, task->a);
    set(&entry->b, task->b);
    set(&entry->c, task->c);
    set(&entry->submitted, sim_now());
    atomic_store_explicit(&entry->seq, seq, memory_order_release);
    pthread_mutex_unlock(&queue->lock);
    return seq;
}

uint64_t npu_sim_last(struct npu_sim_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    uint64_t last = queue->next - 1;
    pthread_mutex_unlock(&queue->lock);
    return last;
}

bool npu_sim_done(uint32_t queue_id, uint64_t seq) {
    struct sim_self *self;
    return driver(&self) && sim_schedule_next(self, queue_id, seq, NULL) > seq;
}

bool npu_sim_wait(uint32_t queue_id, uint64_t seq, int32_t timeout_ms) {
    struct sim_self *self;
    if (!driver(&self))
        return false;
    uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : sim_now() + (uint64_t)timeout_ms * 1000000u;
    return wait_for(self, queue_id, seq, deadline) > seq;
}
