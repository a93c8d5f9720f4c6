#include "runtime.h"

#include <stdlib.h>

static struct rt_event *retired; /* under rt_lock */

static struct rt_event *valid(rtEvent_t handle) {
    struct rt_event *event = handle;
    return event && event->magic == RT_EVENT ? event : NULL;
}

static rtError_t create(rtEvent_t *handle) {
    RT_NEED_CONTEXT;
    if (!handle)
        return RT_PARAM_INVALID;
    uint64_t cell;
    if (!npu_sim_event_open(&cell))
        return RT_NO_EVENT;
    pthread_mutex_lock(&rt_lock);
    struct rt_event *event = retired;
    if (event)
        retired = event->next;
    else if (!(event = malloc(sizeof *event)))
        abort();
    *event = (struct rt_event){.magic = RT_EVENT, .cell = cell};
    pthread_mutex_unlock(&rt_lock);
    *handle = event;
    return 0;
}

RT_API rtError_t rtEventCreate(rtEvent_t *event) {
    SIM_ENTER(rtEventCreate);
    return create(event);
}

RT_API rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flag) {
    SIM_ENTER(rtEventCreateWithFlag);
    (void)flag;
    return create(event);
}

RT_API rtError_t rtEventCreateExWithFlag(rtEvent_t *event, uint32_t flag) {
    SIM_ENTER(rtEventCreateExWithFlag);
    (void)flag;
    return create(event);
}

RT_API rtError_t rtEventDestroy(rtEvent_t handle) {
    SIM_ENTER(rtEventDestroy);
    struct rt_event *event = valid(handle);
    if (!event)
        return RT_PARAM_INVALID;
    npu_sim_event_close(event->cell);
    pthread_mutex_lock(&rt_lock);
    event->magic = RT_DEAD;
    event->next = retired;
    retired = event;
    pthread_mutex_unlock(&rt_lock);
    return 0;
}

RT_API rtError_t rtEventRecord(rtEvent_t handle, rtStream_t stream_handle) {
    SIM_ENTER(rtEventRecord);
    struct rt_stream *stream;
    struct rt_event *event = valid(handle);
    rtError_t error = event ? rt_stream(stream_handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    struct npu_sim_task task = {.kind = NPU_SIM_RECORD, .a = event->cell, .b = ++event->number};
    event->graph = stream->graph;
    event->serial = stream->graph ? stream->graph->serial : 0;
    event->queue_id = npu_sim_queue_id(stream->queue);
    event->recorded = true;
    if (stream->graph) {
        rt_submit(stream, &task);
        return 0;
    }
    npu_sim_event_expect(event->cell, event->number);
    event->seq = npu_sim_submit(stream->queue, &task);
    return 0;
}

/* Nothing of the record stays: as if it had never been recorded. */
RT_API rtError_t rtEventReset(rtEvent_t handle, rtStream_t stream_handle) {
    SIM_ENTER(rtEventReset);
    struct rt_stream *stream;
    struct rt_event *event = valid(handle);
    rtError_t error = event ? rt_stream(stream_handle, &stream) : RT_PARAM_INVALID;
    if (error)
        return error;
    rt_submit(stream, &(struct npu_sim_task){.kind = NPU_SIM_ORDER});
    return 0;
}

RT_API rtError_t rtStreamWaitEvent(rtStream_t stream_handle, rtEvent_t handle) {
    SIM_ENTER(rtStreamWaitEvent);
    struct rt_stream *stream;
    struct rt_event *event = valid(handle);
    rtError_t error = event ? rt_stream(stream_handle, &stream) : RT_PARAM_INVALID;
    if (error || !event->recorded)
        return error;
    if (event->graph && !stream->graph) {
        pthread_mutex_lock(&rt_lock);
        bool active = event->graph->serial == event->serial && event->graph->origin;
        stream->graph = active ? event->graph : NULL;
        pthread_mutex_unlock(&rt_lock);
    }
    rt_submit(stream, &(struct npu_sim_task){.kind = NPU_SIM_WAIT, .a = event->queue_id, .b = event->seq});
    return 0;
}

/* 0, or why the event can be neither asked nor waited for. */
static rtError_t observable(rtEvent_t handle, struct rt_event **event) {
    *event = valid(handle);
    if (!*event)
        return RT_PARAM_INVALID;
    if (!(*event)->graph)
        return 0;
    rt_kill_capture((*event)->graph, (*event)->serial);
    return RT_EVENT_CAPTURED;
}

static rtError_t synchronize(rtEvent_t handle, int32_t timeout) {
    RT_NEED_CONTEXT;
    struct rt_event *event;
    rtError_t error = observable(handle, &event);
    if (error || !event->recorded)
        return error;
    return npu_sim_wait(event->queue_id, event->seq, timeout) ? 0 : RT_WAIT_TIMEOUT;
}

RT_API rtError_t rtEventSynchronize(rtEvent_t event) {
    SIM_ENTER(rtEventSynchronize);
    return synchronize(event, -1);
}

RT_API rtError_t rtEventSynchronizeWithTimeout(rtEvent_t event, int32_t timeout) {
    SIM_ENTER(rtEventSynchronizeWithTimeout);
    return synchronize(event, timeout);
}

static bool done(const struct rt_event *event) {
    return event->recorded && npu_sim_done(event->queue_id, event->seq);
}

RT_API rtError_t rtEventQuery(rtEvent_t handle) {
    SIM_ENTER(rtEventQuery);
    struct rt_event *event;
    rtError_t error = observable(handle, &event);
    if (error)
        return error;
    return done(event) ? 0 : RT_EVENT_NOT_COMPLETE;
}

RT_API rtError_t rtEventQueryStatus(rtEvent_t handle, int *status) {
    SIM_ENTER(rtEventQueryStatus);
    struct rt_event *event;
    rtError_t error = status ? observable(handle, &event) : RT_PARAM_INVALID;
    if (!error)
        *status = done(event); /* 0 not ready, 1 complete */
    return error;
}

RT_API rtError_t rtEventQueryWaitStatus(rtEvent_t handle, int *status) {
    SIM_ENTER(rtEventQueryWaitStatus);
    struct rt_event *event;
    rtError_t error = status ? observable(handle, &event) : RT_PARAM_INVALID;
    if (!error)
        *status = !done(event); /* 0 complete, 1 not ready */
    return error;
}

static rtError_t time_of(rtEvent_t handle, uint64_t *ns) {
    struct rt_event *event;
    rtError_t error = observable(handle, &event);
    if (error)
        return error;
    *ns = done(event) ? npu_sim_event_time(event->cell) : 0;
    return *ns ? 0 : RT_EVENT_NOT_COMPLETE;
}

RT_API rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end) {
    SIM_ENTER(rtEventElapsedTime);
    uint64_t from, to;
    rtError_t error = ms ? time_of(start, &from) : RT_PARAM_INVALID;
    if (!error)
        error = time_of(end, &to);
    if (!error)
        *ms = (float)((double)((int64_t)(to - from)) / 1e6);
    return error;
}

RT_API rtError_t rtEventGetTimeStamp(uint64_t *time, rtEvent_t event) {
    SIM_ENTER(rtEventGetTimeStamp);
    uint64_t ns;
    rtError_t error = time ? time_of(event, &ns) : RT_PARAM_INVALID;
    if (!error)
        *time = ns / 1000;
    return error;
}
