#include "arena.h"

#include <stdlib.h>

struct arena_range {
    uint64_t at;
    struct arena_range *next;
};

int arena_class(uint64_t bytes) {
    int bits = ARENA_LEAST_BITS;
    while (bits <= ARENA_MOST_BITS && (1ull << bits) < bytes)
        bits++;
    return bits <= ARENA_MOST_BITS ? bits : -1;
}

void arena_give(struct arena *arena, int size_class, uint64_t at) {
    struct arena_range *range = arena->spare;
    if (range)
        arena->spare = range->next;
    else if (!(range = malloc(sizeof *range)))
        return; /* the range is never handed out again */
    *range = (struct arena_range){at, arena->free[size_class]};
    arena->free[size_class] = range;
}

/* Small classes grow by many at a time. */
static bool refill(struct arena *arena, int size_class) {
    const uint64_t bytes = 1ull << size_class, count = bytes <= 2ull << 20 ? 32 : 1;
    uint64_t at = arena->grow(arena, count * bytes);
    if (!at)
        return false;
    for (uint64_t i = count; i > 0; i--)
        arena_give(arena, size_class, at + (i - 1) * bytes);
    return true;
}

bool arena_take(struct arena *arena, int size_class, uint64_t *at) {
    if (!arena->free[size_class] && !refill(arena, size_class))
        return false;
    struct arena_range *range = arena->free[size_class];
    arena->free[size_class] = range->next;
    *at = range->at;
    range->next = arena->spare;
    arena->spare = range;
    return true;
}
