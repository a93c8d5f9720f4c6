/* Copies are done by the host when they are handed in: simulated kernels compute nothing, so no one can tell. What is
 * kept is the order: an asynchronous copy is an entry of its stream. */
#include "runtime.h"

#include <string.h>

#define TO_DEVICE(kind) ((kind) != 0 && (kind) != 2) /* host to host, device to host */

static rtError_t copy(void *to, uint64_t room, const void *from, uint64_t bytes, int kind) {
    RT_NEED_CONTEXT;
    if (bytes > room || (bytes && (!to || !from)))
        return RT_PARAM_INVALID;
    if (TO_DEVICE(kind))
        npu_sim_touched();
    if (bytes)
        memmove(to, from, bytes);
    return 0;
}

static rtError_t fill(void *to, uint64_t room, uint32_t value, uint64_t bytes) {
    RT_NEED_CONTEXT;
    if (bytes > room || (bytes && !to))
        return RT_PARAM_INVALID;
    npu_sim_touched();
    if (bytes)
        memset(to, (int)value, bytes);
    return 0;
}

static rtError_t in_order(rtStream_t handle) {
    struct rt_stream *stream;
    rtError_t error = rt_stream(handle, &stream);
    if (!error)
        rt_submit(stream, &(struct npu_sim_task){.kind = NPU_SIM_ORDER});
    return error;
}

RT_API rtError_t rtMemcpy(void *to, uint64_t room, const void *from, uint64_t bytes, int kind) {
    SIM_ENTER(rtMemcpy);
    return copy(to, room, from, bytes, kind);
}

RT_API rtError_t rtMemcpyAsync(void *to, uint64_t room, const void *from, uint64_t bytes, int kind, rtStream_t stream) {
    SIM_ENTER(rtMemcpyAsync);
    rtError_t error = copy(to, room, from, bytes, kind);
    return error ? error : in_order(stream);
}

RT_API rtError_t rtMemset(void *to, uint64_t room, uint32_t value, uint64_t bytes) {
    SIM_ENTER(rtMemset);
    return fill(to, room, value, bytes);
}

RT_API rtError_t rtMemsetAsync(void *to, uint64_t room, uint32_t value, uint64_t bytes, rtStream_t stream) {
    SIM_ENTER(rtMemsetAsync);
    rtError_t error = fill(to, room, value, bytes);
    return error ? error : in_order(stream);
}
