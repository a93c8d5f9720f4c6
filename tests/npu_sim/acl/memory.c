#include "impl.h"

/* The sizes that the runtime is asked for. */
static size_t padded(size_t size) {
    return (size + 63) / 32 * 32;
}

static size_t aligned(size_t size) {
    return (size + 31) / 32 * 32;
}

ACL_API aclError aclrtMallocImpl(void **ptr, size_t size, int policy) {
    if (!ptr || size == 0)
        return ACL_INVALID_PARAM;
    return rtMalloc(ptr, padded(size), rt_type_of(policy), MODULE_APP);
}

ACL_API aclError aclrtMallocAlign32Impl(void **ptr, size_t size, int policy) {
    if (!ptr || size == 0)
        return ACL_INVALID_PARAM;
    return rtMalloc(ptr, aligned(size), rt_type_of(policy), MODULE_APP);
}

ACL_API aclError aclrtMallocCachedImpl(void **ptr, size_t size, int policy) {
    if (!ptr || size == 0)
        return ACL_INVALID_PARAM;
    return rtMallocCached(ptr, padded(size), rt_type_of(policy), MODULE_APP);
}

ACL_API aclError aclrtMallocWithCfgImpl(void **ptr, size_t size, int policy, struct aclrtMallocConfig *config) {
    ACL_NEED(rtsMalloc);
    if (!ptr || size == 0)
        return ACL_INVALID_PARAM;
    return rtsMalloc(ptr, size, policy, 0, (rtMallocConfig_t *)config);
}

ACL_API aclError aclrtMallocForTaskSchedulerImpl(void **ptr, size_t size, int policy,
                                                 struct aclrtMallocConfig *config) {
    ACL_NEED(rtsMalloc);
    if (!ptr || size == 0)
        return ACL_INVALID_PARAM;
    return rtsMalloc(ptr, size, policy, 0, (rtMallocConfig_t *)config);
}

ACL_API aclError aclrtFreeImpl(void *ptr) {
    return ptr ? rtFree(ptr) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtFreeWithDevSyncImpl(void *ptr) {
    return ptr ? rtFreeWithDevSync(ptr) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtMallocHostImpl(void **ptr, size_t size) {
    return ptr && size ? rtMallocHost(ptr, size, MODULE_APP) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtMallocHostWithCfgImpl(void **ptr, uint64_t size, struct aclrtMallocConfig *config) {
    return ptr && size ? rtsMallocHost(ptr, size, (rtMallocConfig_t *)config) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtFreeHostImpl(void *ptr) {
    return ptr ? rtFreeHost(ptr) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtHostRegisterImpl(void *ptr, uint64_t size, int type, void **mapped) {
    int32_t device;
    uint32_t card;
    aclError error = rtGetDevice(&device);
    if (error)
        return error;
    int32_t index;
    error = rtGetLogicDevIdByUserDevId(device, &index);
    if (!error)
        error = rtGetDevicePhyIdByIndex((uint32_t)index, &card);
    return error || !halHostRegister(ptr, size, (uint32_t)type, card, mapped) ? error : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtHostRegisterV2Impl(void *ptr, uint64_t size, uint32_t flag) {
    void *mapped;
    return aclrtHostRegisterImpl(ptr, size, (int)flag, &mapped);
}

ACL_API aclError aclrtHostUnregisterImpl(void *ptr) {
    return halHostUnregister(ptr, 0) ? ACL_INVALID_PARAM : 0;
}

/* Attributes name a page size: of the plain forms 13 is huge, 14 giant; of HBM and DDR every huge one. */
static uint32_t page_type(int attr) {
    switch (attr) {
    case 2:
    case 4:
    case 6:
    case 8:
    case 13:
    case 16:
        return 1;
    case 10:
    case 11:
    case 14:
    case 17:
        return 2;
    default:
        return 0;
    }
}

static struct drv_mem_prop physical(const aclrtPhysicalMemProp *prop) {
    return (struct drv_mem_prop){.side = (uint32_t)prop->location.type,
                                 .devid = prop->location.id,
                                 .module_id = MODULE_APP,
                                 .pg_type = page_type(prop->memAttr),
                                 .reserve = prop->reserve};
}

ACL_API aclError aclrtMallocPhysicalImpl(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop,
                                         uint64_t flags) {
    ACL_NEED(rtMallocPhysical);
    if (!handle || size == 0 || !prop)
        return ACL_INVALID_PARAM;
    struct drv_mem_prop translated = physical(prop);
    return rtMallocPhysical(handle, size, &translated, flags);
}

ACL_API aclError aclrtFreePhysicalImpl(aclrtDrvMemHandle handle) {
    ACL_NEED(rtFreePhysical);
    return handle ? rtFreePhysical(handle) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtReserveMemAddressImpl(void **ptr, size_t size, size_t alignment, void *expected, uint64_t flags) {
    ACL_NEED(rtReserveMemAddress);
    return rtReserveMemAddress(ptr, size, alignment, expected, flags);
}

ACL_API aclError aclrtReserveMemAddressNoUCMemoryImpl(void **ptr, size_t size, size_t alignment, void *expected,
                                                      uint64_t flags) {
    return aclrtReserveMemAddressImpl(ptr, size, alignment, expected, flags);
}

ACL_API aclError aclrtReleaseMemAddressImpl(void *ptr) {
    ACL_NEED(rtReleaseMemAddress);
    return rtReleaseMemAddress(ptr);
}

ACL_API aclError aclrtMapMemImpl(void *ptr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    ACL_NEED(rtMapMem);
    return rtMapMem(ptr, size, offset, handle, flags);
}

ACL_API aclError aclrtUnmapMemImpl(void *ptr) {
    ACL_NEED(rtUnmapMem);
    return rtUnmapMem(ptr);
}

ACL_API aclError aclrtMemSetAccessImpl(void *ptr, size_t size, void *descriptions, size_t count) {
    return rtMemSetAccess(ptr, size, descriptions, count);
}

ACL_API aclError aclrtMemRetainAllocationHandleImpl(void *ptr, aclrtDrvMemHandle *handle) {
    return rtMemRetainAllocationHandle(ptr, handle);
}

ACL_API aclError aclrtMemExportToShareableHandleImpl(aclrtDrvMemHandle handle, int type, uint64_t flags,
                                                     uint64_t *shareable) {
    return rtMemExportToShareableHandle(handle, type, flags, shareable);
}

ACL_API aclError aclrtMemImportFromShareableHandleImpl(uint64_t shareable, int32_t device, aclrtDrvMemHandle *handle) {
    return rtMemImportFromShareableHandle(shareable, device, handle);
}

ACL_API aclError aclrtMemSetPidToShareableHandleImpl(uint64_t shareable, int32_t *pids, size_t count) {
    return rtMemSetPidToShareableHandle(shareable, pids, (uint32_t)count);
}

ACL_API aclError aclrtMemGetAllocationGranularityImpl(aclrtPhysicalMemProp *prop, int option, size_t *granularity) {
    if (!prop)
        return ACL_INVALID_PARAM;
    struct drv_mem_prop translated = physical(prop);
    return rtMemGetAllocationGranularity(&translated, option, granularity);
}

ACL_API aclError aclrtMemAllocManagedImpl(void **ptr, uint64_t size, uint32_t flag) {
    ACL_NEED(rtMemAllocManaged);
    return rtMemAllocManaged(ptr, size, flag, MODULE_APP);
}
