/* Functions of kernel binaries, and how they get to a stream. */
#ifndef NPU_SIM_RUNTIME_BINARY_H
#define NPU_SIM_RUNTIME_BINARY_H

#include "runtime.h"

struct rt_function {
    enum rt_magic magic;
    uint64_t ns; /* UINT64_MAX: as the settings say */
    const void *stub;
    struct rt_function *in_bucket;
    struct rt_function *next;
};

const struct rt_function *rt_function_of_stub(const void *stub);

/* `description` may be a struct npu_sim_kernel, if there are as many bytes; else the function (NULL for none) decides.
 */
rtError_t rt_launch(const struct rt_function *function, const void *description, size_t bytes, rtStream_t handle);

/* Task descriptions of real clients have layouts of their own: only the magic word is looked at to begin with. */
rtError_t rt_launch_task(const void *info, rtStream_t stream);

#endif
