#include "runtime.h"

RT_API rtError_t rtMallocPhysical(rtDrvMemHandle *handle, size_t size, struct drv_mem_prop *prop, uint64_t flags) {
    SIM_ENTER(rtMallocPhysical);
    RT_NEED_CONTEXT;
    RT_NEED(halMemCreate);
    if (!handle || !prop)
        return RT_PARAM_INVALID;
    struct drv_mem_prop physical = *prop;
    if (prop->side == SIDE_DEVICE) {
        rtError_t error = rt_card((int32_t)prop->devid, &physical.devid);
        if (error)
            return error;
    }
    return rt_error(halMemCreate((drv_mem_handle_t **)handle, size, &physical, flags));
}

RT_API rtError_t rtFreePhysical(rtDrvMemHandle handle) {
    SIM_ENTER(rtFreePhysical);
    RT_NEED(halMemRelease);
    return rt_error(halMemRelease(handle));
}

static rtError_t allocate(rtDrvMemHandle *handle, size_t size, int policy, const rtMallocConfig_t *config) {
    RT_CURRENT(context);
    RT_NEED(halMemCreate);
    if (!handle)
        return RT_PARAM_INVALID;
    struct drv_mem_prop prop = {
        .side = SIDE_DEVICE, .devid = context->card, .module_id = MODULE_APP, .pg_type = policy >= 2 ? 0 : 1};
    for (size_t i = 0; config && i < config->numAttrs; i++)
        if (config->attrs[i].attr == 1)
            prop.module_id = config->attrs[i].value.moduleId;
    return rt_error(halMemCreate((drv_mem_handle_t **)handle, size, &prop, 0));
}

RT_API rtError_t rtsMemMallocPhysical(rtDrvMemHandle *handle, size_t size, int policy, rtMallocConfig_t *config) {
    SIM_ENTER(rtsMemMallocPhysical);
    return allocate(handle, size, policy, config);
}

/* Takes the address of the handle, unlike the older one. */
RT_API rtError_t rtsMemFreePhysical(rtDrvMemHandle *handle) {
    SIM_ENTER(rtsMemFreePhysical);
    RT_NEED(halMemRelease);
    return handle ? rt_error(halMemRelease(*handle)) : RT_PARAM_INVALID;
}

/* Addresses belong to the process: torch_npu tries this before it has a context. */
RT_API rtError_t rtReserveMemAddress(void **ptr, size_t size, size_t alignment, void *address, uint64_t flags) {
    SIM_ENTER(rtReserveMemAddress);
    RT_NEED(halMemAddressReserve);
    return rt_error(halMemAddressReserve(ptr, size, alignment, address, flags));
}

RT_API rtError_t rtReleaseMemAddress(void *ptr) {
    SIM_ENTER(rtReleaseMemAddress);
    RT_NEED(halMemAddressFree);
    return rt_error(halMemAddressFree(ptr));
}

RT_API rtError_t rtMapMem(void *ptr, size_t size, size_t offset, rtDrvMemHandle handle, uint64_t flags) {
    SIM_ENTER(rtMapMem);
    RT_NEED(halMemMap);
    return rt_error(halMemMap(ptr, size, offset, handle, flags));
}

RT_API rtError_t rtUnmapMem(void *ptr) {
    SIM_ENTER(rtUnmapMem);
    RT_NEED(halMemUnmap);
    return rt_error(halMemUnmap(ptr));
}

RT_API rtError_t rtMemSetAccess(void *ptr, size_t size, void *descriptions, size_t count) {
    SIM_ENTER(rtMemSetAccess);
    (void)size;
    (void)descriptions;
    (void)count;
    return ptr ? 0 : RT_PARAM_INVALID;
}

RT_API rtError_t rtMemRetainAllocationHandle(void *ptr, rtDrvMemHandle *handle) {
    SIM_ENTER(rtMemRetainAllocationHandle);
    RT_NEED(halMemRetainAllocationHandle);
    return handle ? rt_error(halMemRetainAllocationHandle((drv_mem_handle_t **)handle, ptr)) : RT_PARAM_INVALID;
}

RT_API rtError_t rtMemExportToShareableHandle(rtDrvMemHandle handle, int type, uint64_t flags, uint64_t *shareable) {
    SIM_ENTER(rtMemExportToShareableHandle);
    RT_NEED(halMemExportToShareableHandle);
    return rt_error(halMemExportToShareableHandle(handle, type, flags, shareable));
}

RT_API rtError_t rtMemImportFromShareableHandle(uint64_t shareable, int32_t device, rtDrvMemHandle *handle) {
    SIM_ENTER(rtMemImportFromShareableHandle);
    RT_NEED(halMemImportFromShareableHandle);
    uint32_t card;
    rtError_t error = rt_card(device, &card);
    return error ? error : rt_error(halMemImportFromShareableHandle(shareable, card, (drv_mem_handle_t **)handle));
}

RT_API rtError_t rtMemSetPidToShareableHandle(uint64_t shareable, int *pids, uint32_t count) {
    SIM_ENTER(rtMemSetPidToShareableHandle);
    (void)shareable;
    return pids && count ? 0 : RT_PARAM_INVALID;
}

RT_API rtError_t rtMemGetAllocationGranularity(struct drv_mem_prop *prop, int option, size_t *granularity) {
    SIM_ENTER(rtMemGetAllocationGranularity);
    RT_NEED(halMemGetAllocationGranularity);
    return rt_error(halMemGetAllocationGranularity(prop, option, granularity));
}
