/* Memory by address and from pools, of the driver. A pool keeps what it once took until it is trimmed or destroyed. */
#include <stdint.h>
#include <stdlib.h>

#include "account.h"
#include "devices.h"
#include "driver.h"

/* flag of halMemAlloc */
enum { KIND_SHIFT = 10, KIND_BITS = 0xf, MODULE_SHIFT = 56, DEVICE_BITS = 0x3ff };
enum { KIND_SVM = 0, KIND_DEVICE = 1, KIND_DVPP = 3, KIND_UVM = 7 };

#define FLAG_HUGE  (1ull << 17)
#define FLAG_GIANT (1ull << 31)

struct pool_id {
    uint64_t id;
    uint32_t device;
};

/* Driver functions call each other too; only the outermost counts. */
static __thread unsigned int driver_depth;

bool vnpu_driver_begin(struct vnpu_call *call, enum vnpu_hook hook) {
    if (!vnpu_begin(call, hook, HAL))
        return false;
    vnpu_store_relaxed(&call->self->driver_seen, 1);
    vnpu_stand_aside(call->self);
    call->outermost = driver_depth++ == 0;
    return true;
}

int vnpu_driver_end(struct vnpu_call *call) {
    driver_depth--;
    return vnpu_end(call);
}

/* ---- Addresses */

static bool on_device(unsigned long long flag) {
    unsigned int kind = flag >> KIND_SHIFT & KIND_BITS;

    return kind == KIND_SVM || kind == KIND_DEVICE || kind == KIND_DVPP || kind == KIND_UVM;
}

static uint64_t page_of_flag(unsigned long long flag) {
    return flag & FLAG_GIANT ? VNPU_PAGE_GIANT : flag & FLAG_HUGE ? VNPU_PAGE_HUGE : VNPU_PAGE;
}

VNPU_EXPORT int halMemAlloc(void **out, unsigned long long size, unsigned long long flag);
int halMemAlloc(void **out, unsigned long long size, unsigned long long flag) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemAlloc))
        return call.result;
    int (*real)(void **, unsigned long long, unsigned long long) = call.real;
    int card = on_device(flag) ? vnpu_card_of_hal(call.self, flag & DEVICE_BITS) : VNPU_NO_CARD;
    uint64_t pages = vnpu_pages(size, page_of_flag(flag));
    bool overhead = flag >> MODULE_SHIFT == VNPU_MODULE_RUNTIME;
    if (!call.outermost || card == VNPU_NO_CARD || pages == 0) {
        call.result = real(out, size, flag);
        return vnpu_driver_end(&call);
    }
    call.result = VNPU_DRIVER_OUT_OF_MEMORY;
    if (vnpu_take(call.self, card, pages, overhead)) {
        call.result = real(out, size, flag);
        if (call.result != 0 || !vnpu_keep(call.self, VNPU_POINTER, (uintptr_t)*out, card, pages, overhead))
            vnpu_give(call.self, card, pages, overhead);
    }
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemFree(void *pointer);
int halMemFree(void *pointer) {
    struct vnpu_call call;
    struct vnpu_record record;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemFree))
        return call.result;
    bool ours = call.outermost && vnpu_untrack(&call.self->tracker, VNPU_POINTER, (uintptr_t)pointer, &record);
    call.result = ((int (*)(void *))call.real)(pointer);
    if (ours && call.result != 0)
        vnpu_track(&call.self->tracker, &record);
    else if (ours)
        vnpu_give(call.self, record.card, record.pages, record.overhead);
    return vnpu_driver_end(&call);
}

/* ---- Pools */

struct vnpu_pool {
    struct pool_id id;
    uint64_t used;     /* bytes handed out */
    uint64_t reserved; /* bytes that the pool holds of the card, as charged */
    struct vnpu_pool *next;
};

static struct vnpu_pool **pool_of(struct vnpu_process *self, struct pool_id id) {
    struct vnpu_pool **at = &self->pools;

    while (*at != NULL && ((*at)->id.id != id.id || (*at)->id.device != id.device))
        at = &(*at)->next;
    return at;
}

static struct vnpu_pool *pool_made(struct vnpu_process *self, struct pool_id id) {
    struct vnpu_pool **at = pool_of(self, id);

    if (*at == NULL && (*at = calloc(1, sizeof **at)) != NULL)
        (*at)->id = id;
    return *at;
}

static void shrink_pool(struct vnpu_process *self, struct vnpu_pool *pool, uint64_t to) {
    if (to >= pool->reserved)
        return;
    vnpu_give(self, vnpu_card_of_hal(self, pool->id.device), (pool->reserved - to) / VNPU_PAGE, false);
    pool->reserved = to;
}

/* The pool grows only by what it has not got already. Its lock is held across the call, so that nobody else changes it.
 */
static int grow_pool(struct vnpu_call *call, struct vnpu_pool *pool, uint64_t va, uint64_t size, int32_t policy) {
    int (*real)(struct pool_id, uint64_t, uint64_t, int32_t) = call->real;
    int card = vnpu_card_of_hal(call->self, pool->id.device);
    uint64_t bytes = vnpu_pages(size, VNPU_PAGE_HUGE) * VNPU_PAGE;
    uint64_t missing = pool->used + bytes > pool->reserved ? pool->used + bytes - pool->reserved : 0;

    if (card == VNPU_NO_CARD || bytes == 0)
        return real(pool->id, va, size, policy);
    if (missing > 0 && !vnpu_take(call->self, card, missing / VNPU_PAGE, false))
        return VNPU_DRIVER_OUT_OF_MEMORY;
    pool->reserved += missing;
    int result = real(pool->id, va, size, policy);
    if (result == 0)
        pool->used += bytes;
    else
        shrink_pool(call->self, pool, pool->reserved - missing);
    return result;
}

VNPU_EXPORT int halMemPoolMalloc(struct pool_id id, uint64_t va, uint64_t size, int32_t policy);
int halMemPoolMalloc(struct pool_id id, uint64_t va, uint64_t size, int32_t policy) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemPoolMalloc))
        return call.result;
    pthread_mutex_lock(&call.self->pools_lock);
    struct vnpu_pool *pool = pool_made(call.self, id);
    call.result = pool == NULL ? VNPU_DRIVER_OUT_OF_MEMORY : grow_pool(&call, pool, va, size, policy);
    pthread_mutex_unlock(&call.self->pools_lock);
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemPoolFree(struct pool_id id, uint64_t va, uint64_t size, int32_t policy);
int halMemPoolFree(struct pool_id id, uint64_t va, uint64_t size, int32_t policy) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemPoolFree))
        return call.result;
    pthread_mutex_lock(&call.self->pools_lock);
    call.result = ((int (*)(struct pool_id, uint64_t, uint64_t, int32_t))call.real)(id, va, size, policy);
    struct vnpu_pool *pool = *pool_of(call.self, id);
    uint64_t bytes = vnpu_pages(size, VNPU_PAGE_HUGE) * VNPU_PAGE;
    if (call.result == 0 && pool != NULL)
        pool->used -= bytes < pool->used ? bytes : pool->used;
    pthread_mutex_unlock(&call.self->pools_lock);
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemPoolTrim(struct pool_id id, uint64_t *reserved, uint64_t used, uint64_t free_bytes);
int halMemPoolTrim(struct pool_id id, uint64_t *reserved, uint64_t used, uint64_t free_bytes) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemPoolTrim))
        return call.result;
    pthread_mutex_lock(&call.self->pools_lock);
    call.result = ((int (*)(struct pool_id, uint64_t *, uint64_t, uint64_t))call.real)(id, reserved, used, free_bytes);
    struct vnpu_pool *pool = *pool_of(call.self, id);
    /* The driver answers what the pool still holds. */
    if (call.result == 0 && pool != NULL && reserved != NULL)
        shrink_pool(call.self, pool, *reserved > pool->used ? *reserved : pool->used);
    pthread_mutex_unlock(&call.self->pools_lock);
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemPoolDestroy(struct pool_id id);
int halMemPoolDestroy(struct pool_id id) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemPoolDestroy))
        return call.result;
    pthread_mutex_lock(&call.self->pools_lock);
    call.result = ((int (*)(struct pool_id))call.real)(id);
    struct vnpu_pool **at = pool_of(call.self, id);
    struct vnpu_pool *pool = *at;
    if (call.result == 0 && pool != NULL) {
        shrink_pool(call.self, pool, 0);
        *at = pool->next;
        free(pool);
    }
    pthread_mutex_unlock(&call.self->pools_lock);
    return vnpu_driver_end(&call);
}

void vnpu_forget_pools(struct vnpu_process *self, int card) {
    pthread_mutex_lock(&self->pools_lock);
    for (struct vnpu_pool **at = &self->pools; *at != NULL;) {
        struct vnpu_pool *pool = *at;

        if (vnpu_card_of_hal(self, pool->id.device) != card) {
            at = &pool->next;
            continue;
        }
        shrink_pool(self, pool, 0);
        *at = pool->next;
        free(pool);
    }
    pthread_mutex_unlock(&self->pools_lock);
}
