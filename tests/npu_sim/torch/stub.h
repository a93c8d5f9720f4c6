/* What the C that generate.py writes is made of. */
#ifndef NPU_SIM_TORCH_STUB_H
#define NPU_SIM_TORCH_STUB_H

#include "cann/acl.h"

#define STUB __attribute__((visibility("default")))

/* One operator: it needs no workspace, and is one launch that computes nothing. */
#define OPERATOR(name)                                                                                                 \
    STUB int name##GetWorkspaceSize(void) {                                                                            \
        return 0;                                                                                                      \
    }                                                                                                                  \
    STUB int name(void *workspace, uint64_t size, void *executor, aclrtStream stream) {                                \
        static char function[64];                                                                                      \
        (void)workspace, (void)size, (void)executor;                                                                   \
        return aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, NULL, 0, NULL, 0);                             \
    }

#endif
