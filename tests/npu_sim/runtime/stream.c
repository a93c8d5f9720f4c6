#include "runtime.h"

#include <stdlib.h>

static struct rt_stream *retired; /* under rt_lock */

static struct rt_stream *new_stream(void) {
    struct rt_stream *stream = retired;
    if (stream)
        retired = stream->next;
    else if (!(stream = malloc(sizeof *stream)))
        abort();
    return stream;
}

/* Under rt_lock, as the next one. */
rtError_t rt_stream_open(struct rt_context *context, struct rt_stream **result) {
    struct npu_sim_machine machine;
    void *overhead = NULL;
    rtError_t error = rt_error(npu_sim_machine(&machine));
    if (!error)
        error = rt_overhead_take(context->card, machine.stream_bytes, &overhead);
    if (error)
        return error;
    struct npu_sim_queue *queue;
    if (npu_sim_queue_open(context->card, &queue)) {
        rt_overhead_give(overhead);
        return RT_DRIVER_ERROR;
    }
    struct rt_stream *stream = new_stream();
    *stream = (struct rt_stream){
        .magic = RT_STREAM, .context = context, .queue = queue, .overhead = overhead, .next = context->streams};
    context->streams = stream;
    *result = stream;
    return 0;
}

void rt_stream_close(struct rt_stream *stream) {
    struct rt_stream **in = &stream->context->streams;
    while (*in != stream)
        in = &(*in)->next;
    *in = stream->next;
    npu_sim_queue_close(stream->queue);
    rt_overhead_give(stream->overhead);
    stream->magic = RT_DEAD;
    stream->next = retired;
    retired = stream;
}

rtError_t rt_stream(rtStream_t handle, struct rt_stream **stream) {
    struct rt_context *context = rt_current();
    if (!context)
        return RT_CONTEXT_NULL;
    *stream = handle ? handle : context->fallback;
    if ((*stream)->magic != RT_STREAM)
        return RT_INVALID_HANDLE;
    return (*stream)->context == context ? 0 : RT_STREAM_CONTEXT;
}

void rt_submit(struct rt_stream *stream, const struct npu_sim_task *task) {
    struct rt_graph *graph = stream->graph;
    if (!graph) {
        npu_sim_submit(stream->queue, task);
        return;
    }
    pthread_mutex_lock(&rt_lock);
    graph->tasks++;
    graph->ns += task->kind == NPU_SIM_KERNEL ? task->a : 0;
    pthread_mutex_unlock(&rt_lock);
}

static rtError_t create(rtStream_t *handle) {
    RT_CURRENT(context);
    if (!handle)
        return RT_PARAM_INVALID;
    struct rt_stream *stream;
    pthread_mutex_lock(&rt_lock);
    rtError_t error = rt_stream_open(context, &stream);
    pthread_mutex_unlock(&rt_lock);
    if (!error)
        *handle = stream;
    return error;
}

RT_API rtError_t rtStreamCreate(rtStream_t *stream, int32_t priority) {
    SIM_ENTER(rtStreamCreate);
    (void)priority;
    return create(stream);
}

RT_API rtError_t rtStreamCreateWithFlags(rtStream_t *stream, int32_t priority, uint32_t flags) {
    SIM_ENTER(rtStreamCreateWithFlags);
    (void)priority;
    (void)flags;
    return create(stream);
}

static rtError_t destroy(rtStream_t handle, bool force) {
    struct rt_stream *stream;
    rtError_t error = handle ? rt_stream(handle, &stream) : RT_PARAM_INVALID;
    if (error == RT_STREAM_CONTEXT)
        error = 0; /* any context may destroy it */
    if (error)
        return error;
    if (!force)
        npu_sim_wait(npu_sim_queue_id(stream->queue), npu_sim_last(stream->queue), -1);
    pthread_mutex_lock(&rt_lock);
    bool own = stream != stream->context->fallback;
    if (own)
        rt_stream_close(stream);
    pthread_mutex_unlock(&rt_lock);
    return own ? 0 : RT_PARAM_INVALID;
}

RT_API rtError_t rtStreamDestroy(rtStream_t stream) {
    SIM_ENTER(rtStreamDestroy);
    return destroy(stream, false);
}

RT_API rtError_t rtStreamDestroyForce(rtStream_t stream) {
    SIM_ENTER(rtStreamDestroyForce);
    return destroy(stream, true);
}

/* The stream of which somebody asks how far it is. Asking kills a capture. */
static rtError_t asked(rtStream_t handle, struct rt_stream **stream) {
    rtError_t error = rt_stream(handle, stream);
    if (error || !(*stream)->graph)
        return error;
    rt_kill_capture((*stream)->graph, (*stream)->graph->serial);
    return RT_STREAM_CAPTURED;
}

static rtError_t synchronize(rtStream_t handle, int32_t timeout) {
    struct rt_stream *stream;
    rtError_t error = asked(handle, &stream);
    if (error)
        return error;
    bool done = npu_sim_wait(npu_sim_queue_id(stream->queue), npu_sim_last(stream->queue), timeout);
    return done ? 0 : RT_WAIT_TIMEOUT;
}

RT_API rtError_t rtStreamSynchronize(rtStream_t stream) {
    SIM_ENTER(rtStreamSynchronize);
    return synchronize(stream, -1);
}

RT_API rtError_t rtStreamSynchronizeWithTimeout(rtStream_t stream, int32_t timeout) {
    SIM_ENTER(rtStreamSynchronizeWithTimeout);
    return synchronize(stream, timeout);
}

RT_API rtError_t rtStreamQuery(rtStream_t handle) {
    SIM_ENTER(rtStreamQuery);
    struct rt_stream *stream;
    rtError_t error = asked(handle, &stream);
    if (error)
        return error;
    bool done = npu_sim_done(npu_sim_queue_id(stream->queue), npu_sim_last(stream->queue));
    return done ? 0 : RT_STREAM_NOT_COMPLETE;
}
