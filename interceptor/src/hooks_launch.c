/* Launches and graph replays of AscendCL and the runtime. Each waits before it is handed in, never in its middle. */
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "gate.h"

/* dim3, which comes by value. */
struct vnpu_grid {
    uint32_t x, y, z;
};

#define VNPU_ALLOCATE(library, name, ...)
#define VNPU_FREE(library, name, ...)
#define VNPU_OWN(library, name)
#define VNPU_LAUNCH(library, symbol, parameters, arguments, queue)                                                     \
    VNPU_EXPORT int symbol parameters;                                                                                 \
    int symbol parameters {                                                                                            \
        struct vnpu_call call;                                                                                         \
                                                                                                                       \
        if (!vnpu_begin(&call, VNPU_HOOK_##symbol, library))                                                           \
            return call.result;                                                                                        \
        struct vnpu_lane *lane = call.outermost ? vnpu_lane(call.self, queue) : NULL;                                  \
        if (call.outermost && (lane == NULL || !vnpu_launch(call.self, lane))) {                                       \
            call.result = vnpu_denied(library);                                                                        \
            return vnpu_end(&call);                                                                                    \
        }                                                                                                              \
        call.result = ((int(*) parameters)call.real)arguments;                                                         \
        if (lane != NULL)                                                                                              \
            vnpu_launched(lane);                                                                                       \
        return vnpu_end(&call);                                                                                        \
    }
#include "hooks.def"

static int destroy(enum vnpu_hook hook, enum vnpu_library library, void *stream) {
    struct vnpu_call call;

    if (!vnpu_begin(&call, hook, library))
        return call.result;
    if (call.outermost)
        vnpu_lane_end(call.self, stream);
    call.result = ((int (*)(void *))call.real)(stream);
    return vnpu_end(&call);
}

VNPU_EXPORT int aclrtDestroyStream(void *stream);
int aclrtDestroyStream(void *stream) {
    return destroy(VNPU_HOOK_aclrtDestroyStream, ACL, stream);
}

VNPU_EXPORT int aclrtDestroyStreamForce(void *stream);
int aclrtDestroyStreamForce(void *stream) {
    return destroy(VNPU_HOOK_aclrtDestroyStreamForce, ACL, stream);
}

VNPU_EXPORT int rtStreamDestroy(void *stream);
int rtStreamDestroy(void *stream) {
    return destroy(VNPU_HOOK_rtStreamDestroy, RT, stream);
}

VNPU_EXPORT int rtStreamDestroyForce(void *stream);
int rtStreamDestroyForce(void *stream) {
    return destroy(VNPU_HOOK_rtStreamDestroyForce, RT, stream);
}
