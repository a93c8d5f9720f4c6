#include "report.h"

#include "../card/file.h"
#include "../card/memory.h"
#include "../card/schedule.h"

#include <inttypes.h>
#include <stdlib.h>

struct view {
    const struct sim_state *state;
    FILE *out;
    uint64_t now;
    uint32_t cards;
    struct sim_schedule schedule;
    struct sim_memory memory[NPU_SIM_CARDS];
};

/* What the running kernel has had so far. */
static uint64_t under_way(const struct view *v, uint32_t card) {
    const struct sim_card *c = &v->schedule.cards[card];
    return c->stream && v->now > c->started ? v->now - c->started : 0;
}

static void put_card(const struct view *v, uint32_t i) {
    const struct sim_card *card = &v->schedule.cards[i];
    fprintf(v->out, "%s{\"card\": %u, \"used\": %" PRIu64 ", \"peak\": %" PRIu64, i ? ", " : "", i, v->memory[i].used,
            v->memory[i].peak);
    fprintf(v->out, ", \"busy_ns\": %" PRIu64 ", \"kernels\": %" PRIu64 ", \"running\": %s}",
            card->busy_ns + under_way(v, i), card->kernels, card->stream ? "true" : "false");
}

static void put_tag_on_card(const struct view *v, uint32_t tag, uint32_t i) {
    static const struct sim_memory_tag none;
    const struct sim_memory *m = &v->memory[i];
    const struct sim_memory_tag *held = tag < m->lengths[SIM_MEMORY_TAGS] ? &m->tags[tag] : &none;
    const struct sim_card *card = &v->schedule.cards[i];
    uint64_t busy = v->schedule.tags[tag].busy_ns[i] + (card->stream && card->tag == tag ? under_way(v, i) : 0);
    fprintf(v->out, "%s{\"card\": %u, \"app\": %" PRIu64 ", \"overhead\": %" PRIu64 ", \"peak\": %" PRIu64,
            i ? ", " : "", i, held->app, held->overhead, held->peak);
    fprintf(v->out, ", \"excesses\": %" PRIu64 ", \"busy_ns\": %" PRIu64 ", \"kernels\": %" PRIu64 "}", held->excesses,
            busy, v->schedule.tags[tag].kernels[i]);
}

static void put_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\' || *at < ' ')
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    }
    fputc('"', out);
}

static void put_tag(const struct view *v, uint32_t tag) {
    fprintf(v->out, "%s{\"name\": ", tag ? ", " : "");
    put_text(v->out, v->schedule.tags[tag].name);
    fprintf(v->out, ", \"limit\": %" PRIu64 ", \"cards\": [", atomic_load(&v->state->tag_limit[tag]));
    for (uint32_t i = 0; i < v->cards; i++)
        put_tag_on_card(v, tag, i);
    fprintf(v->out, "]}");
}

static uint64_t busy_of(const struct view *v, uint32_t slot, uint32_t generation, uint32_t card) {
    uint64_t busy = 0;
    for (uint32_t i = 0; i < v->schedule.lengths[SIM_SCHEDULE_STREAMS]; i++) {
        const struct sim_stream *stream = &v->schedule.streams[i];
        if (!stream->open || stream->owner != slot || stream->generation != generation || stream->card != card)
            continue;
        busy += stream->busy_ns;
        if (v->schedule.cards[card].stream == i + 1)
            busy += under_way(v, card);
    }
    return busy;
}

/* Device time is that of the streams which are open still. */
static void put_process_on_card(const struct view *v, uint32_t slot, uint32_t generation, uint32_t i) {
    const struct sim_memory *m = &v->memory[i];
    struct sim_memory_process held = {0};
    for (uint32_t row = 0; row < m->lengths[SIM_MEMORY_PROCESSES]; row++)
        if (m->processes[row].slot == slot && m->processes[row].generation == generation)
            held = m->processes[row];
    fprintf(v->out, "%s{\"card\": %u, \"app\": %" PRIu64 ", \"overhead\": %" PRIu64 ", \"busy_ns\": %" PRIu64 "}",
            i ? ", " : "", i, held.app, held.overhead, busy_of(v, slot, generation, i));
}

static void put_processes(const struct view *v) {
    const char *separator = "";
    for (uint32_t slot = 0; slot < NPU_SIM_PROCESSES; slot++) {
        const struct sim_process *process = &v->state->processes[slot];
        uint32_t generation = atomic_load(&process->generation);
        uint32_t tag = atomic_load(&process->tag);
        if (!sim_alive(v->state, slot, generation) || tag >= v->schedule.lengths[SIM_SCHEDULE_TAGS])
            continue;
        fprintf(v->out, "%s{\"pid\": %d, \"tag\": ", separator, process->pid);
        put_text(v->out, v->schedule.tags[tag].name);
        fprintf(v->out, ", \"cards\": [");
        for (uint32_t i = 0; i < v->cards; i++)
            put_process_on_card(v, slot, generation, i);
        fprintf(v->out, "]}");
        separator = ", ";
    }
}

int sim_report(const struct sim_state *state, FILE *out) {
    struct view *v = calloc(1, sizeof *v);
    if (!v)
        return 1;
    v->state = state;
    v->out = out;
    v->cards = (uint32_t)state->settings.cards;
    for (uint32_t i = 0; i < v->cards; i++)
        sim_memory_read(state, i, &v->memory[i]);
    v->now = sim_now();
    sim_schedule_look(state, &v->schedule, v->now);
    fprintf(out, "{\"now_ns\": %" PRIu64 ", \"chip\": \"%s\", \"memory\": %" PRIu64 ", \"cards\": [", v->now,
            state->settings.chip, atomic_load(&state->settings.memory_bytes));
    for (uint32_t i = 0; i < v->cards; i++)
        put_card(v, i);
    fprintf(out, "], \"tags\": [");
    for (uint32_t i = 0; i < v->schedule.lengths[SIM_SCHEDULE_TAGS]; i++)
        put_tag(v, i);
    fprintf(out, "], \"processes\": [");
    put_processes(v);
    fprintf(out, "]}\n");
    free(v);
    return 0;
}
