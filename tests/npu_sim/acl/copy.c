#include "impl.h"

ACL_API aclError aclrtGetMemInfoImpl(int attr, size_t *free_bytes, size_t *total) {
    return free_bytes && total ? rtMemGetInfoEx(attr, free_bytes, total) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtGetMemUsageInfoImpl(int32_t device, void *infos, size_t room, size_t *count) {
    return rtGetMemUsageInfo((uint32_t)device, infos, room, count);
}

ACL_API aclError aclrtMemcpyImpl(void *to, size_t room, const void *from, size_t bytes, int kind) {
    return rtMemcpy(to, room, from, bytes, kind);
}

ACL_API aclError aclrtMemcpyAsyncImpl(void *to, size_t room, const void *from, size_t bytes, int kind,
                                      aclrtStream stream) {
    return rtMemcpyAsync(to, room, from, bytes, kind, stream);
}

ACL_API aclError aclrtMemsetImpl(void *to, size_t room, int32_t value, size_t bytes) {
    return rtMemset(to, room, (uint32_t)value, bytes);
}

ACL_API aclError aclrtMemsetAsyncImpl(void *to, size_t room, int32_t value, size_t bytes, aclrtStream stream) {
    return rtMemsetAsync(to, room, (uint32_t)value, bytes, stream);
}
