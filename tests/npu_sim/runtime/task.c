/* Launches of task descriptions rather than kernels. Some are entered through another exported one: a hook that counts
 * both counts twice. */
#include "binary.h"

RT_API rtError_t rtKernelLaunchFwk(const char *op, void *args, uint32_t size, uint32_t flags, rtStream_t stream) {
    SIM_ENTER(rtKernelLaunchFwk);
    (void)op;
    (void)flags;
    return args ? rt_launch(NULL, args, size, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtKernelLaunchEx(void *args, uint32_t size, uint32_t flags, rtStream_t stream) {
    SIM_ENTER(rtKernelLaunchEx);
    return rtKernelLaunchFwk(NULL, args, size, flags, stream);
}

RT_API rtError_t rtFftsPlusTaskLaunchWithFlag(void *info, rtStream_t stream, uint32_t flag) {
    SIM_ENTER(rtFftsPlusTaskLaunchWithFlag);
    (void)flag;
    return rt_launch_task(info, stream);
}

RT_API rtError_t rtFftsPlusTaskLaunch(void *info, rtStream_t stream) {
    SIM_ENTER(rtFftsPlusTaskLaunch);
    return rtFftsPlusTaskLaunchWithFlag(info, stream, 0);
}

RT_API rtError_t rtStarsTaskLaunchWithFlag(const void *sqe, uint32_t length, rtStream_t stream, uint32_t flag) {
    SIM_ENTER(rtStarsTaskLaunchWithFlag);
    (void)flag;
    return sqe && length ? rt_launch(NULL, sqe, length, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtStarsTaskLaunch(const void *sqe, uint32_t length, rtStream_t stream) {
    SIM_ENTER(rtStarsTaskLaunch);
    return rtStarsTaskLaunchWithFlag(sqe, length, stream, 0);
}

RT_API rtError_t rtMultipleTaskInfoLaunch(const void *info, rtStream_t stream) {
    SIM_ENTER(rtMultipleTaskInfoLaunch);
    return rt_launch_task(info, stream);
}

RT_API rtError_t rtFusionLaunch(void *const info, rtStream_t const stream, void *args) {
    SIM_ENTER(rtFusionLaunch);
    (void)args;
    return rt_launch_task(info, stream);
}

RT_API rtError_t rtCCULaunch(void *info, rtStream_t const stream) {
    SIM_ENTER(rtCCULaunch);
    return rt_launch_task(info, stream);
}

RT_API rtError_t rtLaunchDvppTask(const void *sqe, uint32_t length, rtStream_t stream, void *config) {
    SIM_ENTER(rtLaunchDvppTask);
    (void)config;
    return sqe && length ? rt_launch(NULL, sqe, length, stream) : RT_PARAM_INVALID;
}

RT_API rtError_t rtNanoModelExecute(void *execute) {
    SIM_ENTER(rtNanoModelExecute);
    return rt_launch_task(execute, NULL);
}
