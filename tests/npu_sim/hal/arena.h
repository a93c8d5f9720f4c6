/* Ranges of numbers (addresses, offsets) handed out in powers of two, so that any sequence of sizes can go on for ever.
 */
#ifndef NPU_SIM_ARENA_H
#define NPU_SIM_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ARENA_LEAST_BITS 12
#define ARENA_MOST_BITS  44

struct arena {
    uint64_t (*grow)(struct arena *arena,
                     uint64_t bytes); /* further numbers, aligned to `bytes`; 0 when there are none */
    void *context;
    struct arena_range *free[ARENA_MOST_BITS + 1]; /* by size class */
    struct arena_range *spare;
};

int arena_class(uint64_t bytes); /* -1 when too large */
bool arena_take(struct arena *arena, int size_class, uint64_t *at);
void arena_give(struct arena *arena, int size_class, uint64_t at);

#endif
