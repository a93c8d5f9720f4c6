/* The runtime library, libruntime.so, as far as it is simulated. Handles are opaque; enumerations travel as int. */
#ifndef CANN_RT_H
#define CANN_RT_H

#include "cann/codes.h"

#include <stddef.h>
#include <stdint.h>

typedef int32_t rtError_t;
typedef void *rtStream_t;
typedef void *rtEvent_t;
typedef void *rtContext_t;
typedef void *rtModel_t;
typedef void *rtFuncHandle;
typedef void *rtBinHandle;
typedef void *rtDrvMemHandle;
typedef void *rtMemPool_t;

struct drv_mem_prop;

typedef struct {
    void *args;
    void *hostInputInfoPtr;
    uint32_t argsSize;
    uint32_t tilingAddrOffset;
    uint32_t tilingDataOffset;
    uint16_t hostInputInfoNum;
    uint8_t hasTiling;
    uint8_t isNoNeedH2DCopy;
    uint8_t reserved[4];
} rtArgsEx_t; /* rtAicpuArgsEx_t begins with the same pointer */

typedef struct {
    uint32_t magic, version;
    const void *data;
    uint64_t length;
} rtDevBinary_t;

typedef struct {
    uint32_t side;
    uint32_t devId;
    int handleType;
    size_t maxSize;
    uint64_t reserve;
} rtMemPoolProps;

typedef struct {
    int attr; /* 1 module id, 2 device id */
    union {
        uint16_t moduleId;
        uint32_t deviceId;
        uint8_t room[8];
    } value;
} rtMallocAttribute_t;

typedef struct {
    rtMallocAttribute_t *attrs;
    size_t numAttrs;
} rtMallocConfig_t;

typedef struct {
    union {
        struct {
            uint64_t total, free, huge_total, huge_free, giant_total, giant_free;
        } phyInfo;
        uint8_t room[512];
    };
} rtMemInfo_t;

typedef struct {
    char name[32];
    uint64_t curMemSize, memPeakSize;
    size_t reserved[8];
} rtMemUsageInfo_t;

/* Devices and contexts */
rtError_t rtGetDeviceCount(int32_t *count);
rtError_t rtSetDevice(int32_t device);
rtError_t rtSetDeviceEx(int32_t device);
rtError_t rtGetDevice(int32_t *device);
rtError_t rtDeviceReset(int32_t device);
rtError_t rtDeviceResetForce(int32_t device);
rtError_t rtDeviceSynchronize(void);
rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout);
rtError_t rtCtxCreate(rtContext_t *context, uint32_t flags, int32_t device);
rtError_t rtCtxDestroy(rtContext_t context);
rtError_t rtCtxSetCurrent(rtContext_t context);
rtError_t rtCtxGetCurrent(rtContext_t *context);
rtError_t rtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active);
rtError_t rtGetSocVersion(char *version, uint32_t length);
rtError_t rtGetVisibleDeviceIdByLogicDeviceId(int32_t logic, int32_t *visible);
rtError_t rtGetLogicDevIdByUserDevId(int32_t user, int32_t *logic);
rtError_t rtGetDevicePhyIdByIndex(uint32_t index, uint32_t *id);

/* Memory */
rtError_t rtMalloc(void **ptr, uint64_t size, uint32_t type, const uint16_t module);
rtError_t rtMallocCached(void **ptr, uint64_t size, uint32_t type, const uint16_t module);
rtError_t rtsMalloc(void **ptr, uint64_t size, int policy, int advise, rtMallocConfig_t *config);
rtError_t rtMemAlloc(void **ptr, uint64_t size, int policy, int advise, rtMallocConfig_t *config);
rtError_t rtFree(void *ptr);
rtError_t rtsFree(void *ptr);
rtError_t rtFreeWithDevSync(void *ptr);
rtError_t rtDvppMalloc(void **ptr, uint64_t size, const uint16_t module);
rtError_t rtDvppMallocWithFlag(void **ptr, uint64_t size, uint32_t flag, const uint16_t module);
rtError_t rtDvppFree(void *ptr);
rtError_t rtMemAllocManaged(void **ptr, uint64_t size, uint32_t flag, const uint16_t module);
rtError_t rtMemFreeManaged(void *ptr);
rtError_t rtMallocManaged(void **ptr, uint64_t size, uint32_t flag, const uint16_t module); /* in older releases */
rtError_t rtFreeManaged(void *ptr);
rtError_t rtMallocHost(void **ptr, uint64_t size, const uint16_t module);
rtError_t rtsMallocHost(void **ptr, uint64_t size, const rtMallocConfig_t *config);
rtError_t rtFreeHost(void *ptr);
rtError_t rtMallocPhysical(rtDrvMemHandle *handle, size_t size, struct drv_mem_prop *prop, uint64_t flags);
rtError_t rtFreePhysical(rtDrvMemHandle handle);
rtError_t rtsMemMallocPhysical(rtDrvMemHandle *handle, size_t size, int policy, rtMallocConfig_t *config);
rtError_t rtsMemFreePhysical(rtDrvMemHandle *handle);
rtError_t rtReserveMemAddress(void **ptr, size_t size, size_t alignment, void *address, uint64_t flags);
rtError_t rtReleaseMemAddress(void *ptr);
rtError_t rtMapMem(void *ptr, size_t size, size_t offset, rtDrvMemHandle handle, uint64_t flags);
rtError_t rtUnmapMem(void *ptr);
rtError_t rtMemSetAccess(void *ptr, size_t size, void *descriptions, size_t count);
rtError_t rtMemRetainAllocationHandle(void *ptr, rtDrvMemHandle *handle);
rtError_t rtMemExportToShareableHandle(rtDrvMemHandle handle, int type, uint64_t flags, uint64_t *shareable);
rtError_t rtMemImportFromShareableHandle(uint64_t shareable, int32_t device, rtDrvMemHandle *handle);
rtError_t rtMemSetPidToShareableHandle(uint64_t shareable, int *pids, uint32_t count);
rtError_t rtMemGetAllocationGranularity(struct drv_mem_prop *prop, int option, size_t *granularity);
rtError_t rtMemPoolCreate(rtMemPool_t *pool, const rtMemPoolProps *props);
rtError_t rtMemPoolDestroy(rtMemPool_t pool);
rtError_t rtMemPoolMallocAsync(void **ptr, const uint64_t size, const rtMemPool_t pool, const rtStream_t stream);
rtError_t rtMemPoolFreeAsync(void *ptr, rtStream_t stream);
rtError_t rtMemPoolTrimTo(rtMemPool_t pool, uint64_t keep);
rtError_t rtMemGetInfo(size_t *free, size_t *total);
rtError_t rtMemGetInfoEx(int kind, size_t *free, size_t *total);
rtError_t rtsMemGetInfo(int kind, size_t *free, size_t *total);
rtError_t rtMemGetInfoByType(int32_t device, uint32_t type, rtMemInfo_t *info);
rtError_t rtGetMemUsageInfo(uint32_t device, rtMemUsageInfo_t *infos, size_t room, size_t *count);
rtError_t rtMemcpy(void *to, uint64_t room, const void *from, uint64_t bytes, int kind);
rtError_t rtMemcpyAsync(void *to, uint64_t room, const void *from, uint64_t bytes, int kind, rtStream_t stream);
rtError_t rtMemset(void *to, uint64_t room, uint32_t value, uint64_t bytes);
rtError_t rtMemsetAsync(void *to, uint64_t room, uint32_t value, uint64_t bytes, rtStream_t stream);

/* Streams and events */
rtError_t rtStreamCreate(rtStream_t *stream, int32_t priority);
rtError_t rtStreamCreateWithFlags(rtStream_t *stream, int32_t priority, uint32_t flags);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamDestroyForce(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);
rtError_t rtStreamSynchronizeWithTimeout(rtStream_t stream, int32_t timeout);
rtError_t rtStreamQuery(rtStream_t stream);
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event);
rtError_t rtEventCreate(rtEvent_t *event);
rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flag);
rtError_t rtEventCreateExWithFlag(rtEvent_t *event, uint32_t flag);
rtError_t rtEventDestroy(rtEvent_t event);
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream);
rtError_t rtEventReset(rtEvent_t event, rtStream_t stream);
rtError_t rtEventSynchronize(rtEvent_t event);
rtError_t rtEventSynchronizeWithTimeout(rtEvent_t event, int32_t timeout);
rtError_t rtEventQuery(rtEvent_t event);
rtError_t rtEventQueryStatus(rtEvent_t event, int *status);
rtError_t rtEventQueryWaitStatus(rtEvent_t event, int *status);
rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end);
rtError_t rtEventGetTimeStamp(uint64_t *time, rtEvent_t event);
rtError_t rtStreamBeginCapture(rtStream_t stream, int mode);
rtError_t rtStreamEndCapture(rtStream_t stream, rtModel_t *model);
rtError_t rtStreamGetCaptureInfo(rtStream_t stream, int *status, rtModel_t *model);

/* Kernels and graphs */
rtError_t rtDevBinaryRegister(const rtDevBinary_t *binary, void **handle);
rtError_t rtDevBinaryUnRegister(void *handle);
rtError_t rtFunctionRegister(void *binary, const void *stub, const char *name, const void *info, uint32_t mode);
rtError_t rtsBinaryLoadFromData(const void *data, uint64_t length, const void *config, rtBinHandle *handle);
rtError_t rtsBinaryUnload(rtBinHandle handle);
rtError_t rtsFuncGetByName(const rtBinHandle binary, const char *name, rtFuncHandle *function);
rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *sm, rtStream_t stream);
rtError_t rtKernelLaunchWithFlag(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm, rtStream_t stream,
                                 uint32_t flags);
rtError_t rtKernelLaunchWithFlagV2(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm, rtStream_t stream,
                                   uint32_t flags, const void *config);
rtError_t rtKernelLaunchWithHandle(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                   rtStream_t stream, const void *info);
rtError_t rtKernelLaunchWithHandleV2(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args, void *sm,
                                     rtStream_t stream, const void *config);
rtError_t rtLaunchKernelByFuncHandle(rtFuncHandle function, uint32_t blocks, void *args, rtStream_t stream);
rtError_t rtLaunchKernelByFuncHandleV2(rtFuncHandle function, uint32_t blocks, void *args, rtStream_t stream,
                                       const void *config);
rtError_t rtLaunchKernelByFuncHandleV3(rtFuncHandle function, uint32_t blocks, const rtArgsEx_t *args,
                                       rtStream_t stream, const void *config);
rtError_t rtsLaunchKernelWithHostArgs(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config,
                                      void *args, uint32_t size, void *holders, uint32_t holder_count);
rtError_t rtsLaunchKernelWithDevArgs(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config,
                                     const void *args, uint32_t size, void *reserve);
rtError_t rtsLaunchKernelWithConfig(rtFuncHandle function, uint32_t blocks, rtStream_t stream, void *config, void *args,
                                    void *reserve);
rtError_t rtLaunchKernelWithArgsArray(void *function, uint32_t blocks, rtStream_t stream, void *config, void **args);
rtError_t rtLaunchSIMTKernelWithHostArgs(void *function, struct cann_dim3 grid, struct cann_dim3 block, size_t scratch,
                                         rtStream_t stream, void *config, void *args, uint32_t size, void *holders,
                                         uint32_t holder_count);
rtError_t rtLaunchSIMTKernelWithArgsArray(void *function, struct cann_dim3 grid, struct cann_dim3 block, size_t scratch,
                                          rtStream_t stream, void *config, void **args);
rtError_t rtVectorCoreKernelLaunch(const void *stub, uint32_t blocks, rtArgsEx_t *args, void *sm, rtStream_t stream,
                                   uint32_t flags, const void *config);
rtError_t rtVectorCoreKernelLaunchWithHandle(void *handle, const uint64_t key, uint32_t blocks, rtArgsEx_t *args,
                                             void *sm, rtStream_t stream, const void *config);
rtError_t rtAicpuKernelLaunchWithFlag(const void *names, uint32_t blocks, const rtArgsEx_t *args, void *sm,
                                      rtStream_t stream, uint32_t flags);
rtError_t rtAicpuKernelLaunchExWithArgs(const uint32_t type, const char *op, const uint32_t blocks, const void *args,
                                        void *sm, const rtStream_t stream, const uint32_t flags);
rtError_t rtCpuKernelLaunchWithFlag(const void *so, const void *kernel, uint32_t blocks, const rtArgsEx_t *args,
                                    void *sm, rtStream_t stream, uint32_t flags);
rtError_t rtsLaunchCpuKernel(const rtFuncHandle function, uint32_t blocks, rtStream_t stream, const void *config,
                             void *args);
rtError_t rtKernelLaunchEx(void *args, uint32_t size, uint32_t flags, rtStream_t stream);
rtError_t rtKernelLaunchFwk(const char *op, void *args, uint32_t size, uint32_t flags, rtStream_t stream);
rtError_t rtFftsPlusTaskLaunch(void *info, rtStream_t stream);
rtError_t rtFftsPlusTaskLaunchWithFlag(void *info, rtStream_t stream, uint32_t flag);
rtError_t rtStarsTaskLaunch(const void *sqe, uint32_t length, rtStream_t stream);
rtError_t rtStarsTaskLaunchWithFlag(const void *sqe, uint32_t length, rtStream_t stream, uint32_t flag);
rtError_t rtMultipleTaskInfoLaunch(const void *info, rtStream_t stream);
rtError_t rtFusionLaunch(void *const info, rtStream_t const stream, void *args);
rtError_t rtCCULaunch(void *info, rtStream_t const stream);
rtError_t rtLaunchDvppTask(const void *sqe, uint32_t length, rtStream_t stream, void *config);
rtError_t rtNanoModelExecute(void *execute);
rtError_t rtModelExecute(rtModel_t model, rtStream_t stream, uint32_t flag);
rtError_t rtModelExecuteSync(rtModel_t model, rtStream_t stream, uint32_t flag, int32_t timeout);
rtError_t rtsModelExecute(rtModel_t model, int32_t timeout);
rtError_t rtsModelExecuteAsync(rtModel_t model, rtStream_t stream);
rtError_t rtModelDestroy(rtModel_t model);
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length);

/* Of the simulator: how many tasks a graph holds, whatever they are. */
uint64_t npu_sim_graph_tasks(rtModel_t model);

/* Functions that not every runtime has: who refers to them asks whether they are there. */
#pragma weak rtsMalloc
#pragma weak rtMallocPhysical
#pragma weak rtFreePhysical
#pragma weak rtReserveMemAddress
#pragma weak rtReleaseMemAddress
#pragma weak rtMapMem
#pragma weak rtUnmapMem
#pragma weak rtMemAllocManaged
#pragma weak rtMemPoolCreate
#pragma weak rtMemPoolDestroy
#pragma weak rtMemPoolMallocAsync
#pragma weak rtMemPoolFreeAsync
#pragma weak rtMemPoolTrimTo
#pragma weak rtsLaunchKernelWithHostArgs
#pragma weak rtsLaunchKernelWithDevArgs
#pragma weak rtsLaunchKernelWithConfig
#pragma weak rtsModelExecute

#endif
