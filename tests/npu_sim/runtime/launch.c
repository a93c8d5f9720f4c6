/* Every way to hand in a kernel. They differ in what names the kernel and where its arguments are. */
#include "binary.h"
#include "npu_sim/kernel.h"

#include <string.h>

static uint64_t time_of(const struct rt_function *function) {
    struct npu_sim_machine machine;
    if (function && function->magic == RT_FUNCTION && function->ns != UINT64_MAX)
        return function->ns;
    return npu_sim_machine(&machine) ? 0 : machine.kernel_ns;
}

rtError_t rt_launch(const struct rt_function *function, const void *description, size_t bytes, rtStream_t handle) {
    struct rt_stream *stream;
    rtError_t error = rt_stream(handle, &stream);
    if (error)
        return error;
    struct npu_sim_kernel kernel = {0};
    if (description && bytes >= sizeof kernel)
        memcpy(&kernel, description, sizeof kernel);
    if (kernel.magic != NPU_SIM_KERNEL_MAGIC)
        kernel = (struct npu_sim_kernel){.ns = time_of(function)};
    rt_submit(stream,
              &(struct npu_sim_task){.kind = NPU_SIM_KERNEL, .a = kernel.ns, .b = kernel.group, .c = kernel.members});
    return 0;
}

rtError_t rt_launch_task(const void *info, rtStream_t stream) {
    uint64_t magic = 0;
    if (!info)
        return RT_PARAM_INVALID;
    memcpy(&magic, info, sizeof magic);
    return rt_launch(NULL, info, magic == NPU_SIM_KERNEL_MAGIC ? sizeof(struct npu_sim_kernel) : 0, stream);
}

static rtError_t launch_ex(const struct rt_function *function, const rtArgsEx_t *args, rtStream_t stream) {
    return rt_launch(function, args ? args->args : NULL, args ? args->argsSize : 0, stream);
}

static rtError_t launch_handle(void *function, const void *args, size_t bytes, rtStream_t stream) {
    return function ? rt_launch(function, args, bytes, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *sm,
                                rtStream_t stream) {
    SIM_ENTER(rtKernelLaunch);
    (void)blocks;
    (void)sm;
    return rt_launch(rt_function_of_stub(stub), args, size, stream);
}

RT_API rtError_t rtKernelLaunchWithFlag(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                        rtStream_t stream, uint32_t flags) {
    SIM_ENTER(rtKernelLaunchWithFlag);
    (void)blocks;
    (void)sm;
    (void)flags;
    return launch_ex(rt_function_of_stub(stub), args, stream);
}

RT_API rtError_t rtKernelLaunchWithFlagV2(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                          rtStream_t stream, uint32_t flags, const void *config) {
    SIM_ENTER(rtKernelLaunchWithFlagV2);
    (void)blocks;
    (void)sm;
    (void)flags;
    (void)config;
    return launch_ex(rt_function_of_stub(stub), args, stream);
}

RT_API rtError_t rtKernelLaunchWithHandle(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                          rtStream_t stream, const void *info) {
    SIM_ENTER(rtKernelLaunchWithHandle);
    (void)key;
    (void)blocks;
    (void)sm;
    (void)info;
    return handle ? launch_ex(NULL, args, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtKernelLaunchWithHandleV2(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args,
                                            void *sm, rtStream_t stream, const void *config) {
    SIM_ENTER(rtKernelLaunchWithHandleV2);
    (void)key;
    (void)blocks;
    (void)sm;
    (void)config;
    return handle ? launch_ex(NULL, args, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtLaunchKernelByFuncHandle(rtFuncHandle function, uint32_t blocks, void *args, rtStream_t stream) {
    SIM_ENTER(rtLaunchKernelByFuncHandle);
    (void)blocks;
    (void)args;
    return launch_handle(function, NULL, 0, stream);
}

RT_API rtError_t rtLaunchKernelByFuncHandleV2(rtFuncHandle function, uint32_t blocks, void *args, rtStream_t stream,
                                              const void *config) {
    SIM_ENTER(rtLaunchKernelByFuncHandleV2);
    (void)blocks;
    (void)args;
    (void)config;
    return launch_handle(function, NULL, 0, stream);
}

RT_API rtError_t rtLaunchKernelByFuncHandleV3(rtFuncHandle function, uint32_t blocks, const rtArgsEx_t *args,
                                              rtStream_t stream, const void *config) {
    SIM_ENTER(rtLaunchKernelByFuncHandleV3);
    (void)blocks;
    (void)config;
    return function ? launch_ex(function, args, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtsLaunchKernelWithHostArgs(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config,
                                             void *args, uint32_t size, void *holders, uint32_t holder_count) {
    SIM_ENTER(rtsLaunchKernelWithHostArgs);
    (void)blocks;
    (void)config;
    (void)holders;
    (void)holder_count;
    return launch_handle(function, args, size, stream);
}

/* The arguments lie on the device; here that is as good as any address. */
RT_API rtError_t rtsLaunchKernelWithDevArgs(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config,
                                            const void *args, uint32_t size, void *reserve) {
    SIM_ENTER(rtsLaunchKernelWithDevArgs);
    (void)blocks;
    (void)config;
    (void)reserve;
    return launch_handle(function, args, size, stream);
}

RT_API rtError_t rtsLaunchKernelWithConfig(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config,
                                           void *args, void *reserve) {
    SIM_ENTER(rtsLaunchKernelWithConfig);
    (void)blocks;
    (void)config;
    (void)args;
    (void)reserve;
    return launch_handle(function, NULL, 0, stream);
}

RT_API rtError_t rtLaunchKernelWithArgsArray(void *function, uint32_t blocks, rtStream_t stream, void *config,
                                             void **args) {
    SIM_ENTER(rtLaunchKernelWithArgsArray);
    (void)blocks;
    (void)config;
    (void)args;
    return launch_handle(function, NULL, 0, stream);
}

static bool empty(struct cann_dim3 size) {
    return size.x == 0 || size.y == 0 || size.z == 0;
}

RT_API rtError_t rtLaunchSIMTKernelWithHostArgs(void *function, struct cann_dim3 grid, struct cann_dim3 block,
                                                size_t scratch, rtStream_t stream, void *config, void *args,
                                                uint32_t size, void *holders, uint32_t holder_count) {
    SIM_ENTER(rtLaunchSIMTKernelWithHostArgs);
    (void)scratch;
    (void)config;
    (void)holders;
    (void)holder_count;
    return empty(grid) || empty(block) ? RT_PARAM_INVALID : launch_handle(function, args, size, stream);
}

RT_API rtError_t rtLaunchSIMTKernelWithArgsArray(void *function, struct cann_dim3 grid, struct cann_dim3 block,
                                                 size_t scratch, rtStream_t stream, void *config, void **args) {
    SIM_ENTER(rtLaunchSIMTKernelWithArgsArray);
    (void)scratch;
    (void)config;
    (void)args;
    return empty(grid) || empty(block) ? RT_PARAM_INVALID : launch_handle(function, NULL, 0, stream);
}

RT_API rtError_t rtVectorCoreKernelLaunch(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                          rtStream_t stream, uint32_t flags, const void *config) {
    SIM_ENTER(rtVectorCoreKernelLaunch);
    (void)blocks;
    (void)sm;
    (void)flags;
    (void)config;
    return launch_ex(rt_function_of_stub(stub), args, stream);
}

RT_API rtError_t rtVectorCoreKernelLaunchWithHandle(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args,
                                                    void *sm, rtStream_t stream, const void *config) {
    SIM_ENTER(rtVectorCoreKernelLaunchWithHandle);
    (void)key;
    (void)blocks;
    (void)sm;
    (void)config;
    return handle ? launch_ex(NULL, args, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtAicpuKernelLaunchWithFlag(const void *names, uint32_t blocks, const rtArgsEx_t *args, void *sm,
                                             rtStream_t stream, uint32_t flags) {
    SIM_ENTER(rtAicpuKernelLaunchWithFlag);
    (void)blocks;
    (void)sm;
    (void)flags;
    return names ? launch_ex(NULL, args, stream) : RT_PARAM_INVALID;
}

/* Its argument structure begins with the same pointer and keeps its size elsewhere: only the magic word tells. */
RT_API rtError_t rtAicpuKernelLaunchExWithArgs(const uint32_t type, const char *op, const uint32_t blocks,
                                               const void *args, void *sm, const rtStream_t stream,
                                               const uint32_t flags) {
    SIM_ENTER(rtAicpuKernelLaunchExWithArgs);
    (void)type;
    (void)op;
    (void)blocks;
    (void)sm;
    (void)flags;
    if (!args)
        return RT_PARAM_INVALID;
    const void *first = *(const void *const *)args;
    return first ? rt_launch_task(first, stream) : rt_launch(NULL, NULL, 0, stream);
}

RT_API rtError_t rtCpuKernelLaunchWithFlag(const void *so, const void *kernel, uint32_t blocks, const rtArgsEx_t *args,
                                           void *sm, rtStream_t stream, uint32_t flags) {
    SIM_ENTER(rtCpuKernelLaunchWithFlag);
    (void)so;
    (void)blocks;
    (void)sm;
    (void)flags;
    return kernel ? launch_ex(NULL, args, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtsLaunchCpuKernel(const rtFuncHandle function, uint32_t blocks, rtStream_t stream, const void *config,
                                    void *args) {
    SIM_ENTER(rtsLaunchCpuKernel);
    (void)blocks;
    (void)config;
    (void)args;
    return launch_handle(function, NULL, 0, stream);
}
