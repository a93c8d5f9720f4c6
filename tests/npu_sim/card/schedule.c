#include "schedule.h"

#include "cell.h"
#include "file.h"

#include <string.h>

uint64_t sim_schedule_read(const struct sim_state *state, struct sim_schedule *schedule) {
    return sim_cell_read(&state->schedule_cell, &sim_schedule_shape, state->schedules, sizeof *state->schedules,
                         schedule);
}

void sim_schedule_look(const struct sim_state *state, struct sim_schedule *schedule, uint64_t now) {
    sim_schedule_read(state, schedule);
    do
        schedule->lengths[SIM_SCHEDULE_EFFECTS] = 0;
    while (sim_schedule_advance(state, schedule, now));
}

static bool publish(struct sim_self *self, uint64_t head, const struct sim_schedule *schedule) {
    struct sim_state *state = self->state;
    return sim_cell_publish(&state->schedule_cell, &sim_schedule_shape, state->schedules, sizeof *state->schedules,
                            self->slot, head, schedule);
}

/* Writes the times of completed records to their events. Harmless however often and late: a time goes only where the
 * number of the record still stands without one. */
static void settle(struct sim_state *state, struct sim_schedule *schedule) {
    for (uint32_t i = 0; i < schedule->lengths[SIM_SCHEDULE_EFFECTS]; i++) {
        const struct sim_effect *effect = &schedule->effects[i];
        uint64_t expected = SIM_EVENT_NUMBER(effect->number);
        uint64_t at = effect->at > state->epoch ? effect->at - state->epoch : 1;
        atomic_compare_exchange_strong(&state->events[effect->event % (NPU_SIM_PROCESSES * NPU_SIM_EVENTS)], &expected,
                                       expected | (at & SIM_EVENT_TIME));
    }
    schedule->lengths[SIM_SCHEDULE_EFFECTS] = 0;
}

typedef bool change(struct sim_self *self, struct sim_schedule *schedule, void *argument);

/* Brings the machine up to now, applies `edit` (NULL for none; false means: leave it) and publishes, until nobody was
 * faster. Returns what `edit` last said. Under schedule_lock; what was published is in self->schedule then. */
static bool transact(struct sim_self *self, change *edit, void *argument) {
    struct sim_schedule *schedule = self->schedule;
    for (;;) {
        uint64_t head = sim_schedule_read(self->state, schedule);
        settle(self->state, schedule);
        bool advanced = sim_schedule_advance(self->state, schedule, sim_now());
        bool full = schedule->lengths[SIM_SCHEDULE_EFFECTS] == NPU_SIM_EFFECTS;
        bool edited = !full && edit && edit(self, schedule, argument);
        if (!advanced && !edited)
            return false;
        if (!publish(self, head, schedule))
            continue;
        settle(self->state, schedule);
        if (!full)
            return edited;
    }
}

static bool edit(struct sim_self *self, change *what, void *argument) {
    pthread_mutex_lock(&self->schedule_lock);
    bool done = transact(self, what, argument);
    pthread_mutex_unlock(&self->schedule_lock);
    return done;
}

void sim_schedule_update(struct sim_self *self) {
    edit(self, NULL, NULL);
}

uint64_t sim_schedule_next(struct sim_self *self, uint32_t stream, uint64_t seq, uint64_t *when) {
    pthread_mutex_lock(&self->schedule_lock);
    transact(self, NULL, NULL);
    uint64_t next = self->schedule->streams[stream].next;
    if (next <= seq && when)
        *when = sim_schedule_foresee(self->state, self->schedule, stream, seq);
    pthread_mutex_unlock(&self->schedule_lock);
    return next;
}

struct tag_request {
    char name[NPU_SIM_NAME];
    uint32_t index;
};

static bool add_tag(struct sim_self *self, struct sim_schedule *s, void *argument) {
    (void)self;
    struct tag_request *request = argument;
    uint32_t n = s->lengths[SIM_SCHEDULE_TAGS];
    for (request->index = 0; request->index < n; request->index++)
        if (strncmp(s->tags[request->index].name, request->name, NPU_SIM_NAME) == 0)
            return true;
    if (n == NPU_SIM_TAGS)
        return false;
    memset(&s->tags[n], 0, sizeof s->tags[n]);
    memcpy(s->tags[n].name, request->name, NPU_SIM_NAME);
    s->lengths[SIM_SCHEDULE_TAGS] = n + 1;
    return true;
}

bool sim_schedule_tag(struct sim_self *self, const char *name, uint32_t *tag) {
    struct tag_request request = {.index = 0};
    strncpy(request.name, name, NPU_SIM_NAME - 1);
    bool added = edit(self, add_tag, &request);
    *tag = request.index;
    return added;
}

struct stream_request {
    uint32_t card, stream;
    uint64_t first;
};

static bool open_stream(struct sim_self *self, struct sim_schedule *s, void *argument) {
    struct stream_request *request = argument;
    for (uint32_t i = 0; i < NPU_SIM_STREAMS; i++) {
        uint32_t at = (uint32_t)((s->cursor + i) % NPU_SIM_STREAMS);
        uint32_t *length = &s->lengths[SIM_SCHEDULE_STREAMS];
        for (; *length <= at; ++*length)
            s->streams[*length] = (struct sim_stream){.next = NPU_SIM_QUEUE}; /* an empty ring holds no such number */
        struct sim_stream *stream = &s->streams[at];
        if (stream->open)
            continue;
        *stream = (struct sim_stream){.next = stream->next,
                                      .ready_at = sim_now(),
                                      .owner = self->slot,
                                      .generation = self->generation,
                                      .card = (uint16_t)request->card,
                                      .tag = (uint16_t)self->tag,
                                      .open = 1};
        request->stream = at;
        request->first = stream->next;
        s->cursor = at + 1 < *length || at + 1 < 64 ? at + 1 : 0;
        return true;
    }
    return false;
}

bool sim_schedule_open(struct sim_self *self, uint32_t card, uint32_t *stream, uint64_t *first) {
    struct stream_request request = {.card = card};
    bool opened = edit(self, open_stream, &request);
    *stream = request.stream;
    *first = request.first;
    return opened;
}

static bool close_stream(struct sim_self *self, struct sim_schedule *s, void *argument) {
    const uint32_t index = *(const uint32_t *)argument;
    struct sim_stream *stream = &s->streams[index];
    if (!stream->open || stream->owner != self->slot || stream->generation != self->generation)
        return false;
    if (s->cards[stream->card].stream == index + 1)
        stream->dropped = 1;
    else
        sim_schedule_forget(stream);
    return true;
}

void sim_schedule_close(struct sim_self *self, uint32_t stream) {
    edit(self, close_stream, &stream);
}
