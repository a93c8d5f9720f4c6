/*
 * AscendCL's runtime part, libacl_rt.so: each function is a thin door to one of the same name plus Impl, in
 * libacl_rt_impl.so up to CANN 9.1 and inside libruntime.so from 9.2. The table makes declarations, doors and tests.
 */
#ifndef CANN_ACL_H
#define CANN_ACL_H

#include "cann/codes.h"

#include <stddef.h>
#include <stdint.h>

typedef int32_t aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef void *aclmdlRI;
typedef void *aclrtFuncHandle;
typedef void *aclrtBinHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtDrvMemHandle;
typedef void *aclrtMemPool;

typedef struct {
    int handleType, allocationType, memAttr;
    struct {
        uint32_t id;
        int type; /* enum cann_side */
    } location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

typedef struct {
    int allocType, handleType;
    struct {
        uint32_t id;
        int type;
    } location;
    size_t maxSize;
    unsigned char reserved[32];
} aclrtMemPoolProps;

struct aclrtMallocConfig; /* as rtMallocConfig_t */

/* X(name, parameters, arguments) */
#define ACL_MEMORY_TABLE(X)                                                                                            \
    X(aclrtMalloc, (void **ptr, size_t size, int policy), (ptr, size, policy))                                         \
    X(aclrtMallocAlign32, (void **ptr, size_t size, int policy), (ptr, size, policy))                                  \
    X(aclrtMallocCached, (void **ptr, size_t size, int policy), (ptr, size, policy))                                   \
    X(aclrtMallocWithCfg, (void **ptr, size_t size, int policy, struct aclrtMallocConfig *config),                     \
      (ptr, size, policy, config))                                                                                     \
    X(aclrtMallocForTaskScheduler, (void **ptr, size_t size, int policy, struct aclrtMallocConfig *config),            \
      (ptr, size, policy, config))                                                                                     \
    X(aclrtFree, (void *ptr), (ptr))                                                                                   \
    X(aclrtFreeWithDevSync, (void *ptr), (ptr))                                                                        \
    X(aclrtMallocHost, (void **ptr, size_t size), (ptr, size))                                                         \
    X(aclrtMallocHostWithCfg, (void **ptr, uint64_t size, struct aclrtMallocConfig *config), (ptr, size, config))      \
    X(aclrtFreeHost, (void *ptr), (ptr))                                                                               \
    X(aclrtHostRegister, (void *ptr, uint64_t size, int type, void **mapped), (ptr, size, type, mapped))               \
    X(aclrtHostRegisterV2, (void *ptr, uint64_t size, uint32_t flag), (ptr, size, flag))                               \
    X(aclrtHostUnregister, (void *ptr), (ptr))                                                                         \
    X(aclrtMallocPhysical,                                                                                             \
      (aclrtDrvMemHandle * handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags),                     \
      (handle, size, prop, flags))                                                                                     \
    X(aclrtFreePhysical, (aclrtDrvMemHandle handle), (handle))                                                         \
    X(aclrtReserveMemAddress, (void **ptr, size_t size, size_t alignment, void *expected, uint64_t flags),             \
      (ptr, size, alignment, expected, flags))                                                                         \
    X(aclrtReserveMemAddressNoUCMemory, (void **ptr, size_t size, size_t alignment, void *expected, uint64_t flags),   \
      (ptr, size, alignment, expected, flags))                                                                         \
    X(aclrtReleaseMemAddress, (void *ptr), (ptr))                                                                      \
    X(aclrtMapMem, (void *ptr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags),                  \
      (ptr, size, offset, handle, flags))                                                                              \
    X(aclrtUnmapMem, (void *ptr), (ptr))                                                                               \
    X(aclrtMemSetAccess, (void *ptr, size_t size, void *descriptions, size_t count), (ptr, size, descriptions, count)) \
    X(aclrtMemRetainAllocationHandle, (void *ptr, aclrtDrvMemHandle *handle), (ptr, handle))                           \
    X(aclrtMemExportToShareableHandle, (aclrtDrvMemHandle handle, int type, uint64_t flags, uint64_t *shareable),      \
      (handle, type, flags, shareable))                                                                                \
    X(aclrtMemImportFromShareableHandle, (uint64_t shareable, int32_t device, aclrtDrvMemHandle *handle),              \
      (shareable, device, handle))                                                                                     \
    X(aclrtMemSetPidToShareableHandle, (uint64_t shareable, int32_t *pids, size_t count), (shareable, pids, count))    \
    X(aclrtMemGetAllocationGranularity, (aclrtPhysicalMemProp * prop, int option, size_t *granularity),                \
      (prop, option, granularity))                                                                                     \
    X(aclrtMemAllocManaged, (void **ptr, uint64_t size, uint32_t flag), (ptr, size, flag))                             \
    X(aclrtMemPoolCreate, (aclrtMemPool * pool, const aclrtMemPoolProps *props), (pool, props))                        \
    X(aclrtMemPoolDestroy, (aclrtMemPool pool), (pool))                                                                \
    X(aclrtMemPoolMallocAsync, (void **ptr, size_t size, aclrtMemPool pool, aclrtStream stream),                       \
      (ptr, size, pool, stream))                                                                                       \
    X(aclrtMemPoolFreeAsync, (void *ptr, aclrtStream stream), (ptr, stream))                                           \
    X(aclrtMemPoolTrimTo, (aclrtMemPool pool, size_t keep), (pool, keep))                                              \
    X(aclrtGetMemInfo, (int attr, size_t *free_bytes, size_t *total), (attr, free_bytes, total))                       \
    X(aclrtGetMemUsageInfo, (int32_t device, void *infos, size_t room, size_t *count), (device, infos, room, count))   \
    X(aclrtMemcpy, (void *to, size_t room, const void *from, size_t bytes, int kind), (to, room, from, bytes, kind))   \
    X(aclrtMemcpyAsync, (void *to, size_t room, const void *from, size_t bytes, int kind, aclrtStream stream),         \
      (to, room, from, bytes, kind, stream))                                                                           \
    X(aclrtMemset, (void *to, size_t room, int32_t value, size_t bytes), (to, room, value, bytes))                     \
    X(aclrtMemsetAsync, (void *to, size_t room, int32_t value, size_t bytes, aclrtStream stream),                      \
      (to, room, value, bytes, stream))

#define ACL_DEVICE_TABLE(X)                                                                                            \
    X(aclrtGetDeviceCount, (uint32_t *count), (count))                                                                 \
    X(aclrtSetDevice, (int32_t device), (device))                                                                      \
    X(aclrtGetDevice, (int32_t *device), (device))                                                                     \
    X(aclrtResetDevice, (int32_t device), (device))                                                                    \
    X(aclrtResetDeviceForce, (int32_t device), (device))                                                               \
    X(aclrtSynchronizeDevice, (void), ())                                                                              \
    X(aclrtSynchronizeDeviceWithTimeout, (int32_t timeout), (timeout))                                                 \
    X(aclrtCreateContext, (aclrtContext * context, int32_t device), (context, device))                                 \
    X(aclrtDestroyContext, (aclrtContext context), (context))                                                          \
    X(aclrtSetCurrentContext, (aclrtContext context), (context))                                                       \
    X(aclrtGetCurrentContext, (aclrtContext * context), (context))                                                     \
    X(aclrtGetPrimaryCtxState, (int32_t device, uint32_t *flags, int32_t *active), (device, flags, active))            \
    X(aclrtGetRunMode, (int *mode), (mode))                                                                            \
    X(aclrtDeviceCanAccessPeer, (int32_t *can, int32_t device, int32_t peer), (can, device, peer))                     \
    X(aclrtDeviceEnablePeerAccess, (int32_t peer, uint32_t flags), (peer, flags))                                      \
    X(aclrtDeviceGetBareTgid, (int32_t *tgid), (tgid))                                                                 \
    X(aclrtGetLogicDevIdByUserDevId, (int32_t user, int32_t *logic), (user, logic))                                    \
    X(aclrtGetPhyDevIdByLogicDevId, (int32_t logic, int32_t *physical), (logic, physical))                             \
    X(aclrtSetDeviceResLimit, (int32_t device, int type, uint32_t value), (device, type, value))                       \
    X(aclrtGetDeviceResLimit, (int32_t device, int type, uint32_t *value), (device, type, value))                      \
    X(aclrtSetStreamResLimit, (aclrtStream stream, int type, uint32_t value), (stream, type, value))                   \
    X(aclrtGetStreamResLimit, (aclrtStream stream, int type, uint32_t *value), (stream, type, value))

#define ACL_STREAM_TABLE(X)                                                                                            \
    X(aclrtCreateStream, (aclrtStream * stream), (stream))                                                             \
    X(aclrtCreateStreamWithConfig, (aclrtStream * stream, uint32_t priority, uint32_t flag), (stream, priority, flag)) \
    X(aclrtDestroyStream, (aclrtStream stream), (stream))                                                              \
    X(aclrtDestroyStreamForce, (aclrtStream stream), (stream))                                                         \
    X(aclrtSynchronizeStream, (aclrtStream stream), (stream))                                                          \
    X(aclrtSynchronizeStreamWithTimeout, (aclrtStream stream, int32_t timeout), (stream, timeout))                     \
    X(aclrtStreamQuery, (aclrtStream stream, int *status), (stream, status))                                           \
    X(aclrtStreamWaitEvent, (aclrtStream stream, aclrtEvent event), (stream, event))                                   \
    X(aclrtCreateEvent, (aclrtEvent * event), (event))                                                                 \
    X(aclrtCreateEventWithFlag, (aclrtEvent * event, uint32_t flag), (event, flag))                                    \
    X(aclrtCreateEventExWithFlag, (aclrtEvent * event, uint32_t flag), (event, flag))                                  \
    X(aclrtDestroyEvent, (aclrtEvent event), (event))                                                                  \
    X(aclrtRecordEvent, (aclrtEvent event, aclrtStream stream), (event, stream))                                       \
    X(aclrtResetEvent, (aclrtEvent event, aclrtStream stream), (event, stream))                                        \
    X(aclrtSynchronizeEvent, (aclrtEvent event), (event))                                                              \
    X(aclrtSynchronizeEventWithTimeout, (aclrtEvent event, int32_t timeout), (event, timeout))                         \
    X(aclrtQueryEventStatus, (aclrtEvent event, int *status), (event, status))                                         \
    X(aclrtQueryEventWaitStatus, (aclrtEvent event, int *status), (event, status))                                     \
    X(aclrtEventElapsedTime, (float *ms, aclrtEvent start, aclrtEvent end), (ms, start, end))                          \
    X(aclrtEventGetTimestamp, (aclrtEvent event, uint64_t *time), (event, time))                                       \
    X(aclmdlRICaptureBegin, (aclrtStream stream, int mode), (stream, mode))                                            \
    X(aclmdlRICaptureEnd, (aclrtStream stream, aclmdlRI * model), (stream, model))                                     \
    X(aclmdlRICaptureGetInfo, (aclrtStream stream, int *status, aclmdlRI *model), (stream, status, model))             \
    X(aclmdlRIExecute, (aclmdlRI model, int32_t timeout), (model, timeout))                                            \
    X(aclmdlRIExecuteAsync, (aclmdlRI model, aclrtStream stream), (model, stream))                                     \
    X(aclmdlRIDestroy, (aclmdlRI model), (model))

#define ACL_LAUNCH_TABLE(X)                                                                                            \
    X(aclrtBinaryLoadFromData, (const void *data, size_t length, const void *options, aclrtBinHandle *binary),         \
      (data, length, options, binary))                                                                                 \
    X(aclrtBinaryUnLoad, (aclrtBinHandle binary), (binary))                                                            \
    X(aclrtBinaryGetFunction, (aclrtBinHandle binary, const char *name, aclrtFuncHandle *function),                    \
      (binary, name, function))                                                                                        \
    X(aclrtGetFunctionAddr, (aclrtFuncHandle function, void **cube, void **vector), (function, cube, vector))          \
    X(aclrtLaunchKernel,                                                                                               \
      (aclrtFuncHandle function, uint32_t blocks, const void *args, size_t size, aclrtStream stream),                  \
      (function, blocks, args, size, stream))                                                                          \
    X(aclrtLaunchKernelV2,                                                                                             \
      (aclrtFuncHandle function, uint32_t blocks, const void *args, size_t size, void *config, aclrtStream stream),    \
      (function, blocks, args, size, config, stream))                                                                  \
    X(aclrtLaunchKernelWithConfig,                                                                                     \
      (aclrtFuncHandle function, uint32_t blocks, aclrtStream stream, void *config, aclrtArgsHandle args,              \
       void *reserve),                                                                                                 \
      (function, blocks, stream, config, args, reserve))                                                               \
    X(aclrtLaunchKernelWithHostArgs,                                                                                   \
      (aclrtFuncHandle function, uint32_t blocks, aclrtStream stream, void *config, void *args, size_t size,           \
       void *holders, size_t holder_count),                                                                            \
      (function, blocks, stream, config, args, size, holders, holder_count))                                           \
    X(aclrtLaunchKernelWithArgsArray,                                                                                  \
      (void *function, uint32_t blocks, aclrtStream stream, void *config, void **args),                                \
      (function, blocks, stream, config, args))                                                                        \
    X(aclrtLaunchSIMTKernelWithHostArgs,                                                                               \
      (void *function, struct cann_dim3 grid, struct cann_dim3 block, size_t scratch, aclrtStream stream,              \
       void *config, void *args, size_t size, void *holders, size_t holder_count),                                     \
      (function, grid, block, scratch, stream, config, args, size, holders, holder_count))                             \
    X(aclrtLaunchSIMTKernelWithArgsArray,                                                                              \
      (void *function, struct cann_dim3 grid, struct cann_dim3 block, size_t scratch, aclrtStream stream,              \
       void *config, void **args),                                                                                     \
      (function, grid, block, scratch, stream, config, args))

#define ACL_TABLE(X)                                                                                                   \
    ACL_MEMORY_TABLE(X)                                                                                                \
    ACL_DEVICE_TABLE(X)                                                                                                \
    ACL_STREAM_TABLE(X)                                                                                                \
    ACL_LAUNCH_TABLE(X)

#define ACL_DECLARE(name, parameters, arguments)                                                                       \
    aclError name parameters;                                                                                          \
    aclError name##Impl parameters;
ACL_TABLE(ACL_DECLARE)

const char *aclrtGetSocName(void);
const char *aclrtGetSocNameImpl(void);

#endif
