/* Memory in stream order, from a pool of the driver. Addresses are the pool's own; a freed one is used again. */
#include "runtime.h"

#include <stdlib.h>
#include <sys/mman.h>

struct piece {
    void *at;
    uint64_t bytes;
    bool used;
    struct piece *next;
};

struct pool {
    soma_mem_pool_t id;
    uint64_t incarnation;
    uint64_t used;
    struct piece *pieces;
    struct pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static uint64_t last_id;

static struct pool **find(rtMemPool_t handle) {
    struct pool **in = &pools;
    while (*in && (*in != handle || (*in)->incarnation != npu_sim_incarnation()))
        in = &(*in)->next;
    return in;
}

static rtError_t create(rtMemPool_t *handle, uint32_t card, const rtMemPoolProps *props) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        abort();
    pool->id = (soma_mem_pool_t){.poolId = ++last_id, .devId = card};
    pool->incarnation = npu_sim_incarnation();
    soma_mem_pool_prop prop = {.handle_type = props->handleType,
                               .mem_prop = {.side = props->side, .devid = card, .module_id = MODULE_APP, .pg_type = 1},
                               .maxSize = props->maxSize};
    rtError_t error = rt_error(halMemPoolCreate(pool->id, prop));
    if (error) {
        free(pool);
        return error;
    }
    pool->next = pools;
    pools = pool;
    *handle = pool;
    return 0;
}

RT_API rtError_t rtMemPoolCreate(rtMemPool_t *handle, const rtMemPoolProps *props) {
    SIM_ENTER(rtMemPoolCreate);
    RT_NEED_CONTEXT;
    RT_NEED(halMemPoolCreate);
    uint32_t card;
    rtError_t error = handle && props ? rt_card((int32_t)props->devId, &card) : RT_PARAM_INVALID;
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    error = create(handle, card, props);
    pthread_mutex_unlock(&lock);
    return error;
}

RT_API rtError_t rtMemPoolDestroy(rtMemPool_t handle) {
    SIM_ENTER(rtMemPoolDestroy);
    RT_NEED(halMemPoolDestroy);
    pthread_mutex_lock(&lock);
    struct pool **in = find(handle);
    struct pool *pool = *in;
    if (pool)
        *in = pool->next;
    pthread_mutex_unlock(&lock);
    if (!pool)
        return RT_PARAM_INVALID;
    rtError_t error = rt_error(halMemPoolDestroy(pool->id));
    for (struct piece *piece; (piece = pool->pieces);) {
        pool->pieces = piece->next;
        munmap(piece->at, piece->bytes);
        free(piece);
    }
    free(pool);
    return error;
}

static struct piece *piece_for(struct pool *pool, uint64_t bytes) {
    for (struct piece *piece = pool->pieces; piece; piece = piece->next)
        if (!piece->used && piece->bytes == bytes)
            return piece;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct piece *piece = at == MAP_FAILED ? NULL : malloc(sizeof *piece);
    if (!piece)
        return NULL;
    *piece = (struct piece){.at = at, .bytes = bytes, .next = pool->pieces};
    return pool->pieces = piece;
}

static bool trim(struct pool *pool, uint64_t keep) {
    return halMemPoolTrim && halMemPoolTrim(pool->id, &keep, pool->used, 0) == 0;
}

static bool trim_all(uint32_t card) {
    bool any = false;
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->id.devId == card && pool->incarnation == npu_sim_incarnation())
            any |= trim(pool, 0);
    return any;
}

bool rt_pools_trim(uint32_t card) {
    pthread_mutex_lock(&lock);
    bool any = trim_all(card);
    pthread_mutex_unlock(&lock);
    return any;
}

static rtError_t take(struct pool *pool, uint64_t bytes, void **ptr) {
    struct piece *piece = piece_for(pool, bytes);
    if (!piece)
        return RT_OUT_OF_MEMORY;
    uint64_t va = (uintptr_t)piece->at;
    int code = halMemPoolMalloc(pool->id, va, bytes, 0);
    if (code == DRV_OUT_OF_MEMORY && trim_all(pool->id.devId))
        code = halMemPoolMalloc(pool->id, va, bytes, 0);
    if (code)
        return rt_error(code);
    piece->used = true;
    pool->used += bytes;
    *ptr = piece->at;
    return 0;
}

RT_API rtError_t rtMemPoolMallocAsync(void **ptr, const uint64_t size, const rtMemPool_t handle,
                                      const rtStream_t stream_handle) {
    SIM_ENTER(rtMemPoolMallocAsync);
    RT_NEED(halMemPoolMalloc);
    struct rt_stream *stream;
    rtError_t error = ptr && size ? rt_stream(stream_handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    const uint64_t page = 2ull << 20;
    pthread_mutex_lock(&lock);
    struct pool *pool = *find(handle);
    error = pool ? take(pool, (size + page - 1) / page * page, ptr) : RT_PARAM_INVALID;
    pthread_mutex_unlock(&lock);
    if (!error)
        rt_submit(stream, &(struct npu_sim_task){.kind = NPU_SIM_ORDER});
    return error;
}

static struct piece *piece_at(void *ptr, struct pool **of) {
    for (*of = pools; *of; *of = (*of)->next)
        for (struct piece *piece = (*of)->pieces; piece; piece = piece->next)
            if (piece->at == ptr && piece->used && (*of)->incarnation == npu_sim_incarnation())
                return piece;
    return NULL;
}

/* The pool keeps the memory. */
RT_API rtError_t rtMemPoolFreeAsync(void *ptr, rtStream_t stream_handle) {
    SIM_ENTER(rtMemPoolFreeAsync);
    RT_NEED(halMemPoolFree);
    struct rt_stream *stream;
    rtError_t error = rt_stream(stream_handle, &stream);
    if (error)
        return error;
    struct pool *pool;
    pthread_mutex_lock(&lock);
    struct piece *piece = piece_at(ptr, &pool);
    error = piece ? rt_error(halMemPoolFree(pool->id, (uintptr_t)ptr, piece->bytes, 0)) : RT_PARAM_INVALID;
    if (!error) {
        piece->used = false;
        pool->used -= piece->bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!error)
        rt_submit(stream, &(struct npu_sim_task){.kind = NPU_SIM_ORDER});
    return error;
}

RT_API rtError_t rtMemPoolTrimTo(rtMemPool_t handle, uint64_t keep) {
    SIM_ENTER(rtMemPoolTrimTo);
    RT_NEED(halMemPoolTrim);
    pthread_mutex_lock(&lock);
    struct pool *pool = *find(handle);
    bool done = pool && trim(pool, keep);
    pthread_mutex_unlock(&lock);
    return done ? 0 : RT_PARAM_INVALID;
}
