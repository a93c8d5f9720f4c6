/* libacl_dvpp.so and libacl_dvpp_mpi.so: two ways to memory for image processing, one through the runtime, one past it.
 */
#include "impl.h"

#ifdef NPU_SIM_DVPP_MPI

ACL_API int32_t hi_mpi_dvpp_malloc(uint32_t device, void **ptr, uint64_t size) {
    SIM_ENTER(hi_mpi_dvpp_malloc);
    int32_t index;
    uint32_t card;
    if (!ptr || size == 0 || rtGetLogicDevIdByUserDevId((int32_t)device, &index) ||
        rtGetDevicePhyIdByIndex((uint32_t)index, &card))
        return ACL_INVALID_PARAM;
    unsigned long long flag = card | (unsigned long long)HAL_DVPP << HAL_KIND_SHIFT | 1ull << HAL_PHYSICAL_SHIFT |
                              (unsigned long long)MODULE_DVPP << HAL_MODULE_SHIFT;
    return halMemAlloc(ptr, size, flag) ? RT_OUT_OF_MEMORY : 0;
}

ACL_API int32_t hi_mpi_dvpp_free(void *ptr) {
    SIM_ENTER(hi_mpi_dvpp_free);
    return ptr && halMemFree(ptr) == 0 ? 0 : ACL_INVALID_PARAM;
}

#else

ACL_API aclError acldvppMalloc(void **ptr, size_t size) {
    SIM_ENTER(acldvppMalloc);
    return ptr && size ? rtDvppMalloc(ptr, (size + 63) / 32 * 32, MODULE_DVPP) : ACL_INVALID_PARAM;
}

ACL_API aclError acldvppFree(void *ptr) {
    SIM_ENTER(acldvppFree);
    return ptr ? rtDvppFree(ptr) : ACL_INVALID_PARAM;
}

#endif
