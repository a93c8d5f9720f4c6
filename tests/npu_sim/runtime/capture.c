/*
 * Graphs. While a stream is being captured its tasks go into a graph instead of the card; an event recorded there and
 * awaited by another stream brings that stream into the same capture. What would need the tasks to run (a synchronise,
 * a query) kills the capture: it goes on taking tasks and then ends with an error.
 */
#include "runtime.h"

#include <stdlib.h>

static struct rt_graph *retired; /* under rt_lock */
static uint64_t last_serial;

static struct rt_graph *new_graph(struct rt_stream *origin) {
    struct rt_graph *graph = retired;
    if (graph)
        retired = graph->next;
    else if (!(graph = malloc(sizeof *graph)))
        abort();
    *graph = (struct rt_graph){.magic = RT_GRAPH, .status = CAPTURE_ACTIVE, .serial = ++last_serial, .origin = origin};
    return graph;
}

static void retire(struct rt_graph *graph) {
    graph->magic = RT_DEAD;
    graph->next = retired;
    retired = graph;
}

void rt_kill_capture(struct rt_graph *graph, uint64_t serial) {
    pthread_mutex_lock(&rt_lock);
    if (graph->serial == serial && graph->status == CAPTURE_ACTIVE)
        graph->status = CAPTURE_INVALIDATED;
    pthread_mutex_unlock(&rt_lock);
}

bool rt_kill_captures_of(struct rt_context *context) {
    bool any = false;
    pthread_mutex_lock(&rt_lock);
    for (struct rt_stream *stream = context->streams; stream; stream = stream->next) {
        if (!stream->graph)
            continue;
        stream->graph->status = CAPTURE_INVALIDATED;
        any = true;
    }
    pthread_mutex_unlock(&rt_lock);
    return any;
}

RT_API rtError_t rtStreamBeginCapture(rtStream_t handle, int mode) {
    SIM_ENTER(rtStreamBeginCapture);
    (void)mode;
    struct rt_stream *stream;
    rtError_t error = handle ? rt_stream(handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    pthread_mutex_lock(&rt_lock);
    if (stream->graph)
        error = RT_STREAM_CAPTURED;
    else
        stream->graph = new_graph(stream);
    pthread_mutex_unlock(&rt_lock);
    return error;
}

static void leave(struct rt_graph *graph) {
    for (struct rt_stream *stream = graph->origin->context->streams; stream; stream = stream->next)
        if (stream->graph == graph)
            stream->graph = NULL;
    graph->origin = NULL;
}

RT_API rtError_t rtStreamEndCapture(rtStream_t handle, rtModel_t *model) {
    SIM_ENTER(rtStreamEndCapture);
    struct rt_stream *stream;
    rtError_t error = handle && model ? rt_stream(handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    pthread_mutex_lock(&rt_lock);
    struct rt_graph *graph = stream->graph;
    if (!graph || graph->origin != stream) {
        error = RT_STREAM_NOT_CAPTURED;
    } else if (graph->status == CAPTURE_INVALIDATED) {
        error = RT_CAPTURE_INVALIDATED;
        leave(graph);
        retire(graph);
    } else {
        leave(graph);
        graph->status = CAPTURE_NONE;
        *model = graph;
    }
    pthread_mutex_unlock(&rt_lock);
    return error;
}

RT_API rtError_t rtStreamGetCaptureInfo(rtStream_t handle, int *status, rtModel_t *model) {
    SIM_ENTER(rtStreamGetCaptureInfo);
    struct rt_stream *stream;
    rtError_t error = status ? rt_stream(handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    pthread_mutex_lock(&rt_lock);
    *status = stream->graph ? stream->graph->status : CAPTURE_NONE;
    if (model)
        *model = stream->graph;
    pthread_mutex_unlock(&rt_lock);
    return 0;
}

static rtError_t replay(rtModel_t model, rtStream_t handle, struct rt_stream **stream) {
    const struct rt_graph *graph = model;
    rtError_t error = rt_stream(handle, stream);
    if (error)
        return error;
    if (!graph || graph->magic != RT_GRAPH || graph->status != CAPTURE_NONE)
        return RT_PARAM_INVALID;
    rt_submit(*stream, &(struct npu_sim_task){.kind = NPU_SIM_KERNEL, .a = graph->ns});
    return 0;
}

static rtError_t replay_and_wait(rtModel_t model, rtStream_t handle, int32_t timeout) {
    struct rt_stream *stream;
    rtError_t error = replay(model, handle, &stream);
    if (error)
        return error;
    bool done = npu_sim_wait(npu_sim_queue_id(stream->queue), npu_sim_last(stream->queue), timeout);
    return done ? 0 : RT_WAIT_TIMEOUT;
}

RT_API rtError_t rtModelExecute(rtModel_t model, rtStream_t stream, uint32_t flag) {
    SIM_ENTER(rtModelExecute);
    (void)flag;
    return replay(model, stream, &(struct rt_stream *){0});
}

RT_API rtError_t rtsModelExecuteAsync(rtModel_t model, rtStream_t stream) {
    SIM_ENTER(rtsModelExecuteAsync);
    return replay(model, stream, &(struct rt_stream *){0});
}

RT_API rtError_t rtModelExecuteSync(rtModel_t model, rtStream_t stream, uint32_t flag, int32_t timeout) {
    SIM_ENTER(rtModelExecuteSync);
    (void)flag;
    return replay_and_wait(model, stream, timeout);
}

RT_API rtError_t rtsModelExecute(rtModel_t model, int32_t timeout) {
    SIM_ENTER(rtsModelExecute);
    return replay_and_wait(model, NULL, timeout);
}

RT_API rtError_t rtModelDestroy(rtModel_t model) {
    SIM_ENTER(rtModelDestroy);
    struct rt_graph *graph = model;
    pthread_mutex_lock(&rt_lock);
    bool valid = graph && graph->magic == RT_GRAPH && graph->status == CAPTURE_NONE;
    if (valid)
        retire(graph);
    pthread_mutex_unlock(&rt_lock);
    return valid ? 0 : RT_PARAM_INVALID;
}

RT_API uint64_t npu_sim_graph_tasks(rtModel_t model) {
    const struct rt_graph *graph = model;
    return graph->tasks;
}
