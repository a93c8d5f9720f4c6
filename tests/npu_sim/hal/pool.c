/*
 * Memory pools. A pool takes memory of the card when it runs short and keeps what is given back to it, until it is
 * trimmed or destroyed: only then the card has it again. Which pages those are is not followed, only how many bytes.
 */
#include "driver.h"

#include <stdlib.h>

struct pool {
    soma_mem_pool_t id;
    uint64_t used;     /* handed out */
    uint64_t reserved; /* held of the card */
    struct pool *next;
};

static struct pool **find(struct sim_driver *d, soma_mem_pool_t id) {
    struct pool **in = &d->pools;
    while (*in && ((*in)->id.poolId != id.poolId || (*in)->id.devId != id.devId))
        in = &(*in)->next;
    return in;
}

static void shrink(struct sim_self *self, struct pool *pool, uint64_t to) {
    if (to >= pool->reserved)
        return;
    sim_memory_give(self, pool->id.devId, pool->reserved - to, false);
    pool->reserved = to;
}

HAL_API int halMemPoolCreate(soma_mem_pool_t id, soma_mem_pool_prop prop) {
    SIM_ENTER(halMemPoolCreate);
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !driver_sees(d, id.devId))
        return DRV_INVALID_DEVICE;
    if (prop.mem_prop.side != SIDE_DEVICE)
        return DRV_NOT_SUPPORTED;
    int result = DRV_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    struct pool **in = find(d, id);
    if (!*in && (*in = calloc(1, sizeof **in))) {
        (*in)->id = id;
        result = 0;
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

HAL_API int halMemPoolDestroy(soma_mem_pool_t id) {
    HAL_ENTER(halMemPoolDestroy, d, self);
    pthread_mutex_lock(&d->lock);
    struct pool **in = find(d, id);
    struct pool *pool = *in;
    if (pool) {
        *in = pool->next;
        shrink(self, pool, 0);
        free(pool);
    }
    pthread_mutex_unlock(&d->lock);
    return pool ? 0 : DRV_INVALID_VALUE;
}

HAL_API int halMemPoolMalloc(soma_mem_pool_t id, uint64_t va, uint64_t size, int32_t policy) {
    HAL_ENTER(halMemPoolMalloc, d, self);
    (void)va;
    (void)policy;
    int result = DRV_INVALID_VALUE;
    uint64_t bytes = ROUND_UP(size, PAGE_HUGE);
    pthread_mutex_lock(&d->lock);
    struct pool *pool = *find(d, id);
    if (pool && size > 0) {
        uint64_t missing = pool->used + bytes > pool->reserved ? pool->used + bytes - pool->reserved : 0;
        bool got = missing == 0 || sim_memory_take(self, id.devId, missing, false);
        pool->reserved += got ? missing : 0;
        pool->used += got ? bytes : 0;
        result = got ? 0 : DRV_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

HAL_API int halMemPoolFree(soma_mem_pool_t id, uint64_t va, uint64_t size, int32_t policy) {
    HAL_ENTER(halMemPoolFree, d, self);
    (void)va;
    (void)policy;
    uint64_t bytes = ROUND_UP(size, PAGE_HUGE);
    pthread_mutex_lock(&d->lock);
    struct pool *pool = *find(d, id);
    bool valid = pool && bytes <= pool->used;
    if (valid)
        pool->used -= bytes;
    pthread_mutex_unlock(&d->lock);
    return valid ? 0 : DRV_INVALID_VALUE;
}

/* Gives back all but `*reserved` bytes, though nothing that is handed out; answers what the pool still holds. The
 * caller's own figures are not needed here. */
HAL_API int halMemPoolTrim(soma_mem_pool_t id, uint64_t *reserved, uint64_t used, uint64_t free_bytes) {
    SIM_ENTER(halMemPoolTrim);
    (void)used;
    (void)free_bytes;
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !reserved)
        return DRV_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    struct pool *pool = *find(d, id);
    if (pool) {
        shrink(self, pool, *reserved > pool->used ? *reserved : pool->used);
        *reserved = pool->reserved;
    }
    pthread_mutex_unlock(&d->lock);
    return pool ? 0 : DRV_INVALID_VALUE;
}

void pools_reset(struct sim_self *self, struct sim_driver *d, uint32_t card) {
    for (struct pool **in = &d->pools; *in;) {
        struct pool *pool = *in;
        if (pool->id.devId != card) {
            in = &pool->next;
            continue;
        }
        *in = pool->next;
        shrink(self, pool, 0);
        free(pool);
    }
}
