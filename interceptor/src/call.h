/* What every hook does first: join, find the real function, and know whether it is the outermost of its thread. */
#ifndef VNPU_CALL_H
#define VNPU_CALL_H

#include "process.h"
#include "real.h"

struct vnpu_call {
    struct vnpu_process *self;
    void *real;
    int result; /* when the call cannot go on */
    bool outermost;
};

/* False: answer `result`. */
static inline bool vnpu_begin(struct vnpu_call *call, enum vnpu_hook hook, enum vnpu_library library) {
    call->self = vnpu_enter();
    call->real = vnpu_real(hook);
    if (call->real == NULL || call->self == NULL) {
        call->result = call->real == NULL ? vnpu_not_supported(library) : vnpu_denied(library);
        return false;
    }
    call->outermost = vnpu_depth++ == 0;
    return true;
}

static inline int vnpu_end(struct vnpu_call *call) {
    vnpu_depth--;
    return call->result;
}

#endif
