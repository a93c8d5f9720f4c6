#include "runtime.h"

#include <stdlib.h>

pthread_mutex_t rt_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) {
    pthread_mutex_lock(&rt_lock);
}

static void unlock(void) {
    pthread_mutex_unlock(&rt_lock);
}

/* A child must not inherit the lock in another thread's hands. */
__attribute__((constructor)) static void keep_lock_over_fork(void) {
    pthread_atfork(lock, unlock, unlock);
}

static struct rt_context *contexts; /* all there ever were: a stale handle must be told from a good one */
static _Thread_local struct rt_context *current;

static bool usable(const struct rt_context *context) {
    return context && context->alive && context->incarnation == npu_sim_incarnation();
}

struct rt_context *rt_current(void) {
    return usable(current) ? current : NULL;
}

static bool known(const struct rt_context *context) {
    const struct rt_context *at = contexts;
    while (at && at != context)
        at = at->next;
    return usable(at);
}

static rtError_t create(int32_t device, bool primary, struct rt_context **result) {
    uint32_t card;
    rtError_t error = rt_card(device, &card);
    if (error)
        return error;
    struct npu_sim_machine machine;
    void *overhead = NULL;
    error = rt_error(npu_sim_machine(&machine));
    if (!error)
        error = rt_overhead_take(card, machine.context_bytes, &overhead);
    if (error)
        return error;
    struct rt_context *context = calloc(1, sizeof *context);
    if (!context)
        abort();
    *context = (struct rt_context){.incarnation = npu_sim_incarnation(),
                                   .alive = true,
                                   .primary = primary,
                                   .device = device,
                                   .card = card,
                                   .overhead = overhead,
                                   .next = contexts};
    error = rt_stream_open(context, &context->fallback);
    if (error) {
        rt_overhead_give(overhead);
        free(context);
        return error;
    }
    contexts = context;
    *result = context;
    return 0;
}

static void destroy(struct rt_context *context) {
    while (context->streams)
        rt_stream_close(context->streams);
    rt_overhead_give(context->overhead);
    context->alive = false;
}

static struct rt_context *primary_of(int32_t device) {
    struct rt_context *at = contexts;
    while (at && (!usable(at) || !at->primary || at->device != device))
        at = at->next;
    return at;
}

static rtError_t set_device(int32_t device) {
    rtError_t error = 0;
    pthread_mutex_lock(&rt_lock);
    struct rt_context *context = primary_of(device);
    if (!context)
        error = create(device, true, &context);
    if (!error) {
        context->uses++;
        current = context;
    }
    pthread_mutex_unlock(&rt_lock);
    return error;
}

RT_API rtError_t rtSetDevice(int32_t device) {
    SIM_ENTER(rtSetDevice);
    return npu_sim_open() ? RT_INVALID_DEVICE : set_device(device);
}

RT_API rtError_t rtSetDeviceEx(int32_t device) {
    SIM_ENTER(rtSetDeviceEx);
    return npu_sim_open() ? RT_INVALID_DEVICE : set_device(device);
}

static void destroy_all_of(int32_t device) {
    for (struct rt_context *at = contexts; at; at = at->next)
        if (usable(at) && at->device == device)
            destroy(at);
}

/* With the last use of a device goes everything that the process holds on it. */
static rtError_t reset(int32_t device, bool force) {
    pthread_mutex_lock(&rt_lock);
    struct rt_context *context = primary_of(device);
    if (context && (force || --context->uses == 0)) {
        uint32_t card = context->card;
        destroy_all_of(device);
        npu_sim_reset(card);
    }
    pthread_mutex_unlock(&rt_lock);
    return context ? 0 : RT_CONTEXT_NULL;
}

RT_API rtError_t rtDeviceReset(int32_t device) {
    SIM_ENTER(rtDeviceReset);
    return reset(device, false);
}

RT_API rtError_t rtDeviceResetForce(int32_t device) {
    SIM_ENTER(rtDeviceResetForce);
    return reset(device, true);
}

RT_API rtError_t rtCtxCreate(rtContext_t *context, uint32_t flags, int32_t device) {
    SIM_ENTER(rtCtxCreate);
    (void)flags;
    if (!context)
        return RT_PARAM_INVALID;
    struct rt_context *made;
    pthread_mutex_lock(&rt_lock);
    rtError_t error = npu_sim_open() ? RT_INVALID_DEVICE : create(device, false, &made);
    pthread_mutex_unlock(&rt_lock);
    if (!error)
        *context = current = made;
    return error;
}

RT_API rtError_t rtCtxDestroy(rtContext_t handle) {
    SIM_ENTER(rtCtxDestroy);
    struct rt_context *context = handle;
    pthread_mutex_lock(&rt_lock);
    bool valid = known(context) && !context->primary;
    if (valid)
        destroy(context);
    pthread_mutex_unlock(&rt_lock);
    return valid ? 0 : RT_CONTEXT_NULL;
}

RT_API rtError_t rtCtxSetCurrent(rtContext_t handle) {
    SIM_ENTER(rtCtxSetCurrent);
    pthread_mutex_lock(&rt_lock);
    bool valid = known(handle);
    pthread_mutex_unlock(&rt_lock);
    if (!valid)
        return RT_CONTEXT_NULL;
    current = handle;
    return 0;
}

RT_API rtError_t rtCtxGetCurrent(rtContext_t *handle) {
    SIM_ENTER(rtCtxGetCurrent);
    if (!handle)
        return RT_PARAM_INVALID;
    RT_CURRENT(context);
    *handle = context;
    return 0;
}

RT_API rtError_t rtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active) {
    SIM_ENTER(rtGetPrimaryCtxState);
    uint32_t card;
    rtError_t error = rt_card(device, &card);
    if (error)
        return error;
    if (!active)
        return RT_PARAM_INVALID;
    pthread_mutex_lock(&rt_lock);
    *active = primary_of(device) != NULL;
    pthread_mutex_unlock(&rt_lock);
    if (flags)
        *flags = 0;
    return 0;
}

struct mark {
    uint32_t queue_id;
    uint64_t last;
};

/* What is last in each stream of the context now; the caller frees it. */
static struct mark *marks(const struct rt_context *context, size_t *count) {
    struct mark *all = NULL;
    *count = 0;
    pthread_mutex_lock(&rt_lock);
    for (const struct rt_stream *stream = context->streams; stream; stream = stream->next) {
        all = realloc(all, (*count + 1) * sizeof *all);
        if (!all)
            abort();
        all[(*count)++] = (struct mark){npu_sim_queue_id(stream->queue), npu_sim_last(stream->queue)};
    }
    pthread_mutex_unlock(&rt_lock);
    return all;
}

static rtError_t synchronize(int32_t timeout) {
    RT_CURRENT(context);
    if (rt_kill_captures_of(context))
        return RT_CAPTURE_MODE_NOT_SUPPORTED;
    size_t count;
    struct mark *all = marks(context, &count);
    rtError_t result = 0;
    for (size_t i = 0; i < count && !result; i++)
        if (!npu_sim_wait(all[i].queue_id, all[i].last, timeout))
            result = RT_WAIT_TIMEOUT;
    free(all);
    return result;
}

RT_API rtError_t rtDeviceSynchronize(void) {
    SIM_ENTER(rtDeviceSynchronize);
    return synchronize(-1);
}

RT_API rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout) {
    SIM_ENTER(rtDeviceSynchronizeWithTimeout);
    return synchronize(timeout);
}
