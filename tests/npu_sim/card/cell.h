/* A value shared by processes that nobody locks: see state.h. */
#ifndef NPU_SIM_CELL_H
#define NPU_SIM_CELL_H

#include "npu_sim/state.h"

#include <stddef.h>

/* How to copy a value: its fixed part, and as much of each array as its lengths say. Everything is whole 64-bit words.
 */
struct sim_shape {
    size_t fixed;
    struct {
        size_t offset, stride;
        uint32_t limit;
    } arrays[SIM_LENGTHS];
};

extern const struct sim_shape sim_schedule_shape;
extern const struct sim_shape sim_memory_shape;

/* Copies the current value and returns its head, to be handed to sim_cell_publish. */
uint64_t sim_cell_read(const struct sim_cell *cell, const struct sim_shape *shape, const void *buffers, size_t stride,
                       void *copy);

/* Makes `value` the current one if `head` still is; `slot` is the process slot whose buffers are used. A process calls
 * this for one cell from one thread at a time. */
bool sim_cell_publish(struct sim_cell *cell, const struct sim_shape *shape, void *buffers, size_t stride, uint32_t slot,
                      uint64_t head, const void *value);

#endif
