#include "driver.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct block **bucket(struct sim_driver *driver, uint64_t at) {
    return &driver->blocks[(at >> ARENA_LEAST_BITS) * 0x9e3779b97f4a7c15ull >> 52];
}

void block_add(struct sim_driver *driver, const struct block *block) {
    struct block *copy = malloc(sizeof *copy);
    if (!copy)
        abort(); /* the judge cannot go on without its books */
    struct block **in = bucket(driver, block->at);
    *copy = *block;
    copy->next = *in;
    *in = copy;
}

bool block_remove(struct sim_driver *driver, uint64_t at, enum block_kind kind, struct block *block) {
    for (struct block **in = bucket(driver, at); *in; in = &(*in)->next) {
        struct block *found = *in;
        if (found->at != at || found->kind != kind)
            continue;
        *block = *found;
        *in = found->next;
        free(found);
        return true;
    }
    return false;
}

struct block *block_find(struct sim_driver *driver, uint64_t at, enum block_kind kind) {
    struct block *found = *bucket(driver, at);
    while (found && (found->at != at || found->kind != kind))
        found = found->next;
    return found;
}

struct block *block_of_card(struct sim_driver *driver, uint32_t card, enum block_kind kind) {
    for (int i = 0; i < BLOCK_BUCKETS; i++)
        for (struct block *block = driver->blocks[i]; block; block = block->next)
            if (block->kind == kind && block->card == card)
                return block;
    return NULL;
}

struct block *block_around(struct sim_driver *driver, uint64_t at, uint64_t bytes, enum block_kind kind) {
    for (int i = 0; i < BLOCK_BUCKETS; i++)
        for (struct block *block = driver->blocks[i]; block; block = block->next)
            if (block->kind == kind && block->at <= at && bytes <= block->bytes &&
                at - block->at <= block->bytes - bytes)
                return block;
    return NULL;
}

bool space_take(struct sim_driver *driver, uint64_t bytes, struct block *block) {
    block->size_class = arena_class(bytes);
    return block->size_class >= 0 && arena_take(&driver->addresses, block->size_class, &block->at);
}

void space_give(struct sim_driver *driver, const struct block *block) {
    /* Pages exist only where a host copy wrote; a system call per free would drown what the tests measure. */
    if (atomic_load_explicit(&driver->touched, memory_order_relaxed))
        madvise((void *)(uintptr_t)block->at, block->bytes, MADV_DONTNEED);
    arena_give(&driver->addresses, block->size_class, block->at);
}
