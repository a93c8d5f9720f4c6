#include "cell.h"

#define BUFFER(head)         ((size_t)((head) & 0xffff))
#define HEAD(version, index) (((uint64_t)(version) << 16) | (index))

const struct sim_shape sim_schedule_shape = {
    .fixed = offsetof(struct sim_schedule, cards),
    .arrays =
        {
            [SIM_SCHEDULE_CARDS] = {offsetof(struct sim_schedule, cards), sizeof(struct sim_card), NPU_SIM_CARDS},
            [SIM_SCHEDULE_TAGS] = {offsetof(struct sim_schedule, tags), sizeof(struct sim_tag), NPU_SIM_TAGS},
            [SIM_SCHEDULE_EFFECTS] = {offsetof(struct sim_schedule, effects), sizeof(struct sim_effect),
                                      NPU_SIM_EFFECTS},
            [SIM_SCHEDULE_STREAMS] = {offsetof(struct sim_schedule, streams), sizeof(struct sim_stream),
                                      NPU_SIM_STREAMS},
        },
};

const struct sim_shape sim_memory_shape = {
    .fixed = offsetof(struct sim_memory, tags),
    .arrays =
        {
            [SIM_MEMORY_TAGS] = {offsetof(struct sim_memory, tags), sizeof(struct sim_memory_tag), NPU_SIM_TAGS},
            [SIM_MEMORY_PROCESSES] = {offsetof(struct sim_memory, processes), sizeof(struct sim_memory_process),
                                      NPU_SIM_PROCESSES},
        },
};

/* Word by word and atomically: the other side may be writing. What is torn is thrown away by the check of the version.
 */
static void copy_words(void *to, const void *from, size_t bytes) {
    _Atomic uint64_t *out = to;
    const _Atomic uint64_t *in = from;
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        atomic_store_explicit(&out[i], atomic_load_explicit(&in[i], memory_order_relaxed), memory_order_relaxed);
}

static void copy_value(const struct sim_shape *shape, void *to, const void *from) {
    copy_words(to, from, shape->fixed);
    const uint32_t *lengths = to;
    for (int i = 0; i < SIM_LENGTHS; i++) {
        uint32_t length = lengths[i] < shape->arrays[i].limit ? lengths[i] : shape->arrays[i].limit;
        size_t offset = shape->arrays[i].offset;
        copy_words((char *)to + offset, (const char *)from + offset, length * shape->arrays[i].stride);
    }
}

uint64_t sim_cell_read(const struct sim_cell *cell, const struct sim_shape *shape, const void *buffers, size_t stride,
                       void *copy) {
    for (;;) {
        uint64_t head = atomic_load_explicit(&cell->head, memory_order_acquire);
        copy_value(shape, copy, (const char *)buffers + BUFFER(head) * stride);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&cell->head, memory_order_relaxed) == head)
            return head;
    }
}

bool sim_cell_publish(struct sim_cell *cell, const struct sim_shape *shape, void *buffers, size_t stride, uint32_t slot,
                      uint64_t head, const void *value) {
    /* Of the two buffers of a slot at most one is current, and only its owner makes one current. */
    size_t mine = 2 * (size_t)slot;
    if (mine == BUFFER(head))
        mine++;
    if (atomic_load_explicit(&cell->head, memory_order_relaxed) != head)
        return false;
    copy_value(shape, (char *)buffers + mine * stride, value);
    return atomic_compare_exchange_strong_explicit(&cell->head, &head, HEAD((head >> 16) + 1, mine),
                                                   memory_order_release, memory_order_relaxed);
}
