#include "memory.h"

#include "cell.h"

static uint64_t read_cell(const struct sim_state *state, uint32_t card, struct sim_memory *m) {
    return sim_cell_read(&state->memory_cell[card], &sim_memory_shape, state->memories[card], sizeof(struct sim_memory),
                         m);
}

static void release(struct sim_memory *m, struct sim_memory_process *row) {
    m->used -= row->app + row->overhead;
    m->tags[row->tag].app -= row->app;
    m->tags[row->tag].overhead -= row->overhead;
    row->app = row->overhead = 0;
}

static void release_dead(const struct sim_state *state, struct sim_memory *m) {
    uint32_t *length = &m->lengths[SIM_MEMORY_PROCESSES];
    for (uint32_t i = 0; i < *length;) {
        struct sim_memory_process *row = &m->processes[i];
        if (sim_alive(state, row->slot, row->generation)) {
            i++;
        } else {
            release(m, row);
            *row = m->processes[--*length];
        }
    }
}

static struct sim_memory_process *find_row(const struct sim_self *self, struct sim_memory *m) {
    for (uint32_t i = 0; i < m->lengths[SIM_MEMORY_PROCESSES]; i++)
        if (m->processes[i].slot == self->slot && m->processes[i].generation == self->generation)
            return &m->processes[i];
    return NULL;
}

/* The row of this process, made on first use. NULL when it does not live any more: then this is a thread of a killed
 * process on its way out, and nothing that it does counts. */
static struct sim_memory_process *own_row(const struct sim_self *self, struct sim_memory *m) {
    struct sim_memory_process *row = find_row(self, m);
    if (row || !sim_alive(self->state, self->slot, self->generation))
        return row;
    for (uint32_t *n = &m->lengths[SIM_MEMORY_TAGS]; *n <= self->tag; ++*n)
        m->tags[*n] = (struct sim_memory_tag){0};
    row = &m->processes[m->lengths[SIM_MEMORY_PROCESSES]++];
    *row = (struct sim_memory_process){.slot = self->slot, .generation = self->generation, .tag = self->tag};
    return row;
}

static uint64_t total(const struct sim_memory_tag *tag) {
    return tag->app + tag->overhead;
}

/* Beyond what the tag is expected to stay within? Its processes that are killed but not yet gone do not count then. */
static bool exceeds(const struct sim_self *self, struct sim_memory *m) {
    uint64_t limit = atomic_load_explicit(&self->state->tag_limit[self->tag], memory_order_relaxed);
    if (limit == 0 || total(&m->tags[self->tag]) <= limit)
        return false;
    for (uint32_t i = 0; i < m->lengths[SIM_MEMORY_PROCESSES]; i++) {
        struct sim_memory_process *row = &m->processes[i];
        if (row->tag == self->tag && row->slot != self->slot && sim_dying(self->state, row->slot))
            release(m, row);
    }
    return total(&m->tags[self->tag]) > limit;
}

static void take(const struct sim_self *self, struct sim_memory *m, uint64_t bytes, bool overhead) {
    struct sim_memory_process *row = own_row(self, m);
    if (!row)
        return;
    struct sim_memory_tag *tag = &m->tags[self->tag];
    m->used += bytes;
    if (overhead) {
        row->overhead += bytes;
        tag->overhead += bytes;
    } else {
        row->app += bytes;
        tag->app += bytes;
        tag->excesses += exceeds(self, m);
        if (total(tag) > tag->peak)
            tag->peak = total(tag);
    }
    if (m->used > m->peak)
        m->peak = m->used;
}

static void give(const struct sim_self *self, struct sim_memory *m, uint64_t bytes, bool overhead) {
    struct sim_memory_process *row = find_row(self, m);
    if (!row || (overhead ? row->overhead : row->app) < bytes)
        return; /* released already, since this process was killed */
    struct sim_memory_tag *tag = &m->tags[self->tag];
    m->used -= bytes;
    *(overhead ? &row->overhead : &row->app) -= bytes;
    *(overhead ? &tag->overhead : &tag->app) -= bytes;
}

static bool publish(struct sim_self *self, uint32_t card, uint64_t head, const struct sim_memory *m) {
    struct sim_state *state = self->state;
    return sim_cell_publish(&state->memory_cell[card], &sim_memory_shape, state->memories[card],
                            sizeof(struct sim_memory), self->slot, head, m);
}

bool sim_memory_take(struct sim_self *self, uint32_t card, uint64_t bytes, bool overhead) {
    struct sim_memory *m = self->memory[card];
    bool fits;
    pthread_mutex_lock(&self->memory_lock[card]);
    for (uint64_t head;;) {
        head = read_cell(self->state, card, m);
        release_dead(self->state, m);
        uint64_t capacity = atomic_load_explicit(&self->state->settings.memory_bytes, memory_order_relaxed);
        fits = bytes <= capacity && m->used <= capacity - bytes;
        if (!fits)
            break;
        take(self, m, bytes, overhead);
        if (publish(self, card, head, m))
            break;
    }
    pthread_mutex_unlock(&self->memory_lock[card]);
    return fits;
}

void sim_memory_give(struct sim_self *self, uint32_t card, uint64_t bytes, bool overhead) {
    struct sim_memory *m = self->memory[card];
    pthread_mutex_lock(&self->memory_lock[card]);
    for (uint64_t head;;) {
        head = read_cell(self->state, card, m);
        give(self, m, bytes, overhead);
        if (publish(self, card, head, m))
            break;
    }
    pthread_mutex_unlock(&self->memory_lock[card]);
}

void sim_memory_read(const struct sim_state *state, uint32_t card, struct sim_memory *m) {
    read_cell(state, card, m);
    release_dead(state, m);
}
