#include "runtime.h"

#include <string.h>

/* Up to here normal pages are used first, beyond it huge ones. */
#define HUGE_PAGE_FROM (1ull << 20)

static int allocate_hal(void **ptr, uint64_t size, uint64_t page, uint16_t module, uint32_t card, enum hal_kind kind) {
    uint64_t physical = kind == HAL_HOST ? 0 : 1ull << HAL_PHYSICAL_SHIFT;
    return halMemAlloc(
        ptr, size, card | (uint64_t)kind << HAL_KIND_SHIFT | physical | page | (uint64_t)module << HAL_MODULE_SHIFT);
}

static int allocate_pages(void **ptr, uint64_t size, uint32_t type, uint16_t module, uint32_t card,
                          enum hal_kind kind) {
    if (type & (RT_POLICY_GIANT_ONLY | RT_POLICY_GIANT_P2))
        return allocate_hal(ptr, size, HAL_PAGE_GIANT, module, card, kind);
    if (type & (RT_POLICY_HUGE_ONLY | RT_POLICY_HUGE_ONLY_P2))
        return allocate_hal(ptr, size, HAL_PAGE_HUGE, module, card, kind);
    bool huge_first = !(type & (RT_POLICY_NORMAL_ONLY | RT_POLICY_NORMAL_P2)) && size > HUGE_PAGE_FROM;
    if (huge_first && allocate_hal(ptr, size, HAL_PAGE_HUGE, module, card, kind) == 0)
        return 0;
    return allocate_hal(ptr, size, 0, module, card, kind);
}

rtError_t rt_allocate(void **ptr, uint64_t size, uint32_t type, uint16_t module, uint32_t card) {
    uint32_t kind = type & RT_MEMORY_KIND_BITS;
    if (!ptr || size == 0)
        return RT_PARAM_INVALID;
    if (kind == RT_MEMORY_HOST || kind == RT_MEMORY_HOST_SVM)
        return rt_error(allocate_hal(ptr, size, 0, module, card, HAL_HOST));
    int code = allocate_pages(ptr, size, type, module, card, HAL_DEV);
#ifdef NPU_SIM_FUSED
    if (code == DRV_OUT_OF_MEMORY && rt_pools_trim(card))
        code = allocate_pages(ptr, size, type, module, card, HAL_DEV);
#endif
    return rt_error(code);
}

rtError_t rt_overhead_take(uint32_t card, uint64_t bytes, void **ptr) {
    if (bytes == 0)
        return 0;
    return rt_error(allocate_pages(ptr, bytes, 0, MODULE_RUNTIME, card, HAL_DEV));
}

void rt_overhead_give(void *ptr) {
    if (ptr)
        halMemFree(ptr);
}

RT_API rtError_t rtMalloc(void **ptr, uint64_t size, uint32_t type, const uint16_t module) {
    SIM_ENTER(rtMalloc);
    RT_CURRENT(context);
    return rt_allocate(ptr, size, type, module, context->card);
}

RT_API rtError_t rtMallocCached(void **ptr, uint64_t size, uint32_t type, const uint16_t module) {
    SIM_ENTER(rtMallocCached);
    RT_CURRENT(context);
    return rt_allocate(ptr, size, type, module, context->card);
}

static rtError_t allocate_with_config(void **ptr, uint64_t size, int policy, const rtMallocConfig_t *config) {
    RT_CURRENT(context);
    uint16_t module = MODULE_APP;
    uint32_t card = context->card;
    for (size_t i = 0; config && i < config->numAttrs; i++) {
        const rtMallocAttribute_t *attribute = &config->attrs[i];
        if (attribute->attr == 1)
            module = attribute->value.moduleId;
        rtError_t error = attribute->attr == 2 ? rt_card((int32_t)attribute->value.deviceId, &card) : 0;
        if (error)
            return error;
    }
    return rt_allocate(ptr, (size + 31) / 32 * 32, rt_type_of(policy), module, card);
}

RT_API rtError_t rtsMalloc(void **ptr, uint64_t size, int policy, int advise, rtMallocConfig_t *config) {
    SIM_ENTER(rtsMalloc);
    (void)advise;
    return allocate_with_config(ptr, size, policy, config);
}

RT_API rtError_t rtMemAlloc(void **ptr, uint64_t size, int policy, int advise, rtMallocConfig_t *config) {
    SIM_ENTER(rtMemAlloc);
    (void)advise;
    return allocate_with_config(ptr, size, policy, config);
}

static rtError_t release(void *ptr) {
    RT_NEED_CONTEXT;
    return ptr ? rt_error(halMemFree(ptr)) : RT_PARAM_INVALID;
}

RT_API rtError_t rtFree(void *ptr) {
    SIM_ENTER(rtFree);
    return release(ptr);
}

RT_API rtError_t rtsFree(void *ptr) {
    SIM_ENTER(rtsFree);
    return release(ptr);
}

RT_API rtError_t rtFreeWithDevSync(void *ptr) {
    SIM_ENTER(rtFreeWithDevSync);
    rtError_t error = rtDeviceSynchronize();
    return error ? error : release(ptr);
}

RT_API rtError_t rtDvppMallocWithFlag(void **ptr, uint64_t size, uint32_t flag, const uint16_t module) {
    SIM_ENTER(rtDvppMallocWithFlag);
    (void)flag;
    RT_CURRENT(context);
    if (!ptr || size == 0)
        return RT_PARAM_INVALID;
    return rt_error(allocate_pages(ptr, size, 0, module, context->card, HAL_DVPP));
}

RT_API rtError_t rtDvppMalloc(void **ptr, uint64_t size, const uint16_t module) {
    SIM_ENTER(rtDvppMalloc);
    return rtDvppMallocWithFlag(ptr, size, 0, module);
}

RT_API rtError_t rtDvppFree(void *ptr) {
    SIM_ENTER(rtDvppFree);
    return release(ptr);
}

RT_API rtError_t rtMemAllocManaged(void **ptr, uint64_t size, uint32_t flag, const uint16_t module) {
    SIM_ENTER(rtMemAllocManaged);
    (void)flag;
    RT_CURRENT(context);
    struct npu_sim_machine machine;
    if (npu_sim_machine(&machine) || strncmp(machine.chip, "Ascend950", 9) != 0)
        return RT_FEATURE_NOT_SUPPORTED;
    if (!ptr || size == 0)
        return RT_PARAM_INVALID;
    return rt_error(allocate_pages(ptr, size, 0, module, context->card, HAL_UVM));
}

RT_API rtError_t rtMemFreeManaged(void *ptr) {
    SIM_ENTER(rtMemFreeManaged);
    return release(ptr);
}

static rtError_t allocate_host(void **ptr, uint64_t size, uint16_t module) {
    RT_CURRENT(context);
    return rt_allocate(ptr, size, RT_MEMORY_HOST, module, context->card);
}

RT_API rtError_t rtMallocHost(void **ptr, uint64_t size, const uint16_t module) {
    SIM_ENTER(rtMallocHost);
    return allocate_host(ptr, size, module);
}

RT_API rtError_t rtsMallocHost(void **ptr, uint64_t size, const rtMallocConfig_t *config) {
    SIM_ENTER(rtsMallocHost);
    (void)config;
    return allocate_host(ptr, size, MODULE_APP);
}

RT_API rtError_t rtFreeHost(void *ptr) {
    SIM_ENTER(rtFreeHost);
    return ptr ? rt_error(halMemFree(ptr)) : RT_PARAM_INVALID;
}
