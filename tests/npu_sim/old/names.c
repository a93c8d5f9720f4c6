/* Names that functions of the runtime had in older releases. Linked into libruntime of the wiring `old` alone. */
#include "../runtime/runtime.h"

RT_API rtError_t rtMallocManaged(void **ptr, uint64_t size, uint32_t flag, const uint16_t module) {
    SIM_ENTER(rtMallocManaged);
    return rtMemAllocManaged(ptr, size, flag, module);
}

RT_API rtError_t rtFreeManaged(void *ptr) {
    SIM_ENTER(rtFreeManaged);
    return rtMemFreeManaged(ptr);
}
