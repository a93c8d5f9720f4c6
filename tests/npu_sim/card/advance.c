/*
 * The cards as a sequence of moments. There are three kinds: a kernel ends, a stream passes an entry that takes no time
 * (a record, a wait that is fulfilled, a copy), a card starts a kernel. The earliest possible one is taken again and
 * again until it would lie in the future; entries tell when they were handed in, so it does not matter when that is
 * done.
 */
#include "schedule.h"

#include "file.h"

#define NEVER UINT64_MAX

enum action { NONE, COMPLETE, PASS, START };

struct moment {
    enum action action;
    uint64_t at;
    uint64_t order; /* among kernels that could start at the same time, the least goes first */
    uint32_t index; /* card of COMPLETE, else stream */
};

struct head {
    uint64_t at; /* handed in, and all before it done */
    uint64_t submitted, kind, a, b, c;
};

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t word(const _Atomic uint64_t *from) {
    return atomic_load_explicit(from, memory_order_relaxed);
}

static bool head_of(const struct sim_state *state, const struct sim_schedule *s, uint32_t stream, struct head *head) {
    const struct sim_stream *of = &s->streams[stream];
    const struct sim_entry *entry = &state->rings[stream][of->next % NPU_SIM_QUEUE];
    if (atomic_load_explicit(&entry->seq, memory_order_acquire) != of->next)
        return false;
    *head = (struct head){.submitted = word(&entry->submitted),
                          .kind = word(&entry->kind),
                          .a = word(&entry->a),
                          .b = word(&entry->b),
                          .c = word(&entry->c)};
    head->at = later(of->ready_at, head->submitted);
    return true;
}

static bool running(const struct sim_schedule *s, uint32_t stream) {
    return s->cards[s->streams[stream].card].stream == stream + 1;
}

void sim_schedule_forget(struct sim_stream *stream) {
    stream->open = 0;
    stream->dropped = 0;
    stream->next += NPU_SIM_QUEUE; /* no entry of this owner can carry the next one's numbers */
}

static bool drop_dead(const struct sim_state *state, struct sim_schedule *s) {
    bool changed = false;
    for (uint32_t i = 0; i < s->lengths[SIM_SCHEDULE_STREAMS]; i++) {
        struct sim_stream *stream = &s->streams[i];
        if (!stream->open || stream->dropped || sim_alive(state, stream->owner, stream->generation))
            continue;
        /* A kernel on the card runs out whoever started it. */
        if (running(s, i))
            stream->dropped = 1;
        else
            sim_schedule_forget(stream);
        changed = true;
    }
    return changed;
}

static bool sooner(const struct moment *a, const struct moment *b) {
    if (a->at != b->at)
        return a->at < b->at;
    if (a->action != b->action)
        return a->action < b->action;
    return a->order < b->order;
}

static void offer(struct moment *best, enum action action, uint64_t at, uint64_t order, uint32_t index) {
    struct moment candidate = {action, at, order, index};
    if (best->action == NONE || sooner(&candidate, best))
        *best = candidate;
}

/* Round robin: how far a stream is behind the one served last. */
static uint64_t turns_away(const struct sim_card *card, uint32_t stream) {
    return (stream + NPU_SIM_STREAMS - card->last - 1) % NPU_SIM_STREAMS;
}

static bool fulfilled(const struct sim_schedule *s, const struct head *wait) {
    return wait->a >= NPU_SIM_STREAMS || s->streams[wait->a].next > wait->b;
}

static void offer_stream(const struct sim_state *state, const struct sim_schedule *s, uint32_t i, uint64_t clock,
                         struct moment *best) {
    const struct sim_stream *stream = &s->streams[i];
    struct head head;
    if (!stream->open || stream->dropped || running(s, i) || !head_of(state, s, i, &head))
        return;
    const struct sim_card *card = &s->cards[stream->card];
    if (head.kind == SIM_KERNEL) {
        bool in_turn = word(&state->settings.arbiter) == SIM_ARBITER_ROUND_ROBIN;
        if (!card->stream)
            offer(best, START, later(head.at, card->free_at), in_turn ? turns_away(card, i) : head.submitted, i);
    } else if (head.kind != SIM_WAIT) {
        offer(best, PASS, head.at, head.submitted, i);
    } else if (fulfilled(s, &head)) {
        offer(best, PASS, later(head.at, clock), head.submitted, i); /* whatever it waited for was done by now */
    }
}

static struct moment earliest(const struct sim_state *state, const struct sim_schedule *s, uint64_t clock) {
    struct moment best = {.action = NONE, .at = NEVER};
    for (uint32_t i = 0; i < s->lengths[SIM_SCHEDULE_CARDS]; i++)
        if (s->cards[i].stream && s->cards[i].ends != NEVER)
            offer(&best, COMPLETE, s->cards[i].ends, 0, i);
    for (uint32_t i = 0; i < s->lengths[SIM_SCHEDULE_STREAMS]; i++)
        offer_stream(state, s, i, clock, &best);
    return best;
}

static void complete(struct sim_schedule *s, uint32_t index) {
    struct sim_card *card = &s->cards[index];
    struct sim_stream *stream = &s->streams[card->stream - 1];
    uint64_t took = card->ends - card->started;
    stream->next++;
    stream->ready_at = card->ends;
    stream->busy_ns += took;
    if (stream->dropped)
        sim_schedule_forget(stream);
    s->tags[card->tag].busy_ns[index] += took;
    s->tags[card->tag].kernels[index]++;
    card->busy_ns += took;
    card->kernels++;
    card->free_at = card->ends;
    card->stream = 0;
}

static void pass(const struct sim_state *state, struct sim_schedule *s, const struct moment *moment) {
    struct sim_stream *stream = &s->streams[moment->index];
    struct head head;
    if (head_of(state, s, moment->index, &head) && head.kind == SIM_RECORD) {
        uint32_t n = s->lengths[SIM_SCHEDULE_EFFECTS]++;
        s->effects[n] = (struct sim_effect){.event = head.a, .number = head.b, .at = moment->at};
    }
    stream->next++;
    stream->ready_at = moment->at;
}

/* A kernel of a group ends only after all members have started; each then takes its own time. */
static void meet(struct sim_schedule *s, uint64_t group, uint64_t members, uint64_t at) {
    uint64_t present = 0;
    for (uint32_t i = 0; i < s->lengths[SIM_SCHEDULE_CARDS]; i++)
        present += s->cards[i].stream && s->cards[i].group == group;
    for (uint32_t i = 0; present >= members && i < s->lengths[SIM_SCHEDULE_CARDS]; i++)
        if (s->cards[i].stream && s->cards[i].group == group && s->cards[i].ends == NEVER)
            s->cards[i].ends = at + s->cards[i].takes;
}

static void start(const struct sim_state *state, struct sim_schedule *s, const struct moment *moment) {
    struct sim_stream *stream = &s->streams[moment->index];
    struct sim_card *card = &s->cards[stream->card];
    struct head head;
    if (!head_of(state, s, moment->index, &head))
        return;
    card->stream = moment->index + 1;
    card->last = moment->index;
    card->tag = stream->tag;
    card->started = moment->at;
    card->takes = head.a;
    card->group = head.b;
    card->ends = head.b ? NEVER : moment->at + head.a;
    if (head.b)
        meet(s, head.b, head.c, moment->at);
}

static void act(const struct sim_state *state, struct sim_schedule *s, const struct moment *moment) {
    if (moment->action == COMPLETE)
        complete(s, moment->index);
    else if (moment->action == PASS)
        pass(state, s, moment);
    else
        start(state, s, moment);
}

bool sim_schedule_advance(const struct sim_state *state, struct sim_schedule *s, uint64_t now) {
    bool changed = drop_dead(state, s);
    uint64_t clock = 0;
    while (s->lengths[SIM_SCHEDULE_EFFECTS] < NPU_SIM_EFFECTS) {
        struct moment moment = earliest(state, s, clock);
        if (moment.action == NONE || moment.at > now)
            break;
        clock = later(clock, moment.at);
        act(state, s, &moment);
        changed = true;
    }
    return changed;
}

uint64_t sim_schedule_foresee(const struct sim_state *state, struct sim_schedule *s, uint32_t stream, uint64_t seq) {
    uint64_t clock = 0;
    while (s->streams[stream].next <= seq) {
        s->lengths[SIM_SCHEDULE_EFFECTS] = 0; /* nobody will see them */
        struct moment moment = earliest(state, s, clock);
        if (moment.action == NONE)
            return NEVER;
        clock = later(clock, moment.at);
        act(state, s, &moment);
    }
    return clock;
}
