#include "../card/schedule.h"
#include "driver.h"

#include <stdlib.h>

static uint32_t limit(void) {
    const char *text = getenv("NPU_SIM_EVENT_LIMIT");
    unsigned long value = text ? strtoul(text, NULL, 10) : 0;
    return value > 0 && value < NPU_SIM_EVENTS ? (uint32_t)value : NPU_SIM_EVENTS;
}

bool npu_sim_event_open(uint64_t *event) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d)
        return false;
    bool found = true;
    pthread_mutex_lock(&d->lock);
    if (!d->free_events)
        d->free_events = calloc(NPU_SIM_EVENTS, sizeof *d->free_events);
    if (d->free_event_count > 0)
        *event = d->free_events[--d->free_event_count];
    else if (d->free_events && d->events_used < limit())
        *event = (uint64_t)self->slot * NPU_SIM_EVENTS + d->events_used++;
    else
        found = false;
    pthread_mutex_unlock(&d->lock);
    return found;
}

void npu_sim_event_close(uint64_t event) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->free_events[d->free_event_count++] = event;
    pthread_mutex_unlock(&d->lock);
}

void npu_sim_event_expect(uint64_t event, uint16_t number) {
    struct sim_self *self;
    if (driver(&self))
        atomic_store(&self->state->events[event], SIM_EVENT_NUMBER(number));
}

uint64_t npu_sim_event_time(uint64_t event) {
    struct sim_self *self;
    if (!driver(&self))
        return 0;
    sim_schedule_update(self);
    return atomic_load(&self->state->events[event]) & SIM_EVENT_TIME;
}
