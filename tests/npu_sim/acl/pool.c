#include "impl.h"

ACL_API aclError aclrtMemPoolCreateImpl(aclrtMemPool *pool, const aclrtMemPoolProps *props) {
    ACL_NEED(rtMemPoolCreate);
    if (!pool || !props)
        return ACL_INVALID_PARAM;
    rtMemPoolProps translated = {.side = (uint32_t)props->location.type,
                                 .devId = props->location.id,
                                 .handleType = props->handleType,
                                 .maxSize = props->maxSize};
    return rtMemPoolCreate(pool, &translated);
}

ACL_API aclError aclrtMemPoolDestroyImpl(aclrtMemPool pool) {
    ACL_NEED(rtMemPoolDestroy);
    return rtMemPoolDestroy(pool);
}

ACL_API aclError aclrtMemPoolMallocAsyncImpl(void **ptr, size_t size, aclrtMemPool pool, aclrtStream stream) {
    ACL_NEED(rtMemPoolMallocAsync);
    return rtMemPoolMallocAsync(ptr, size, pool, stream);
}

ACL_API aclError aclrtMemPoolFreeAsyncImpl(void *ptr, aclrtStream stream) {
    ACL_NEED(rtMemPoolFreeAsync);
    return rtMemPoolFreeAsync(ptr, stream);
}

ACL_API aclError aclrtMemPoolTrimToImpl(aclrtMemPool pool, size_t keep) {
    ACL_NEED(rtMemPoolTrimTo);
    return rtMemPoolTrimTo(pool, keep);
}
