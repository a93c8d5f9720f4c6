#include "impl.h"

ACL_API aclError aclrtBinaryLoadFromDataImpl(const void *data, size_t length, const void *options,
                                             aclrtBinHandle *binary) {
    return rtsBinaryLoadFromData(data, length, options, binary);
}

ACL_API aclError aclrtBinaryUnLoadImpl(aclrtBinHandle binary) {
    return rtsBinaryUnload(binary);
}

ACL_API aclError aclrtBinaryGetFunctionImpl(aclrtBinHandle binary, const char *name, aclrtFuncHandle *function) {
    return rtsFuncGetByName(binary, name, function);
}

ACL_API aclError aclrtGetFunctionAddrImpl(aclrtFuncHandle function, void **cube, void **vector) {
    if (!function || !cube || !vector)
        return ACL_INVALID_PARAM;
    *cube = *vector = function;
    return 0;
}

ACL_API aclError aclrtLaunchKernelImpl(aclrtFuncHandle function, uint32_t blocks, const void *args, size_t size,
                                       aclrtStream stream) {
    rtArgsEx_t extended = {.args = (void *)args, .argsSize = (uint32_t)size};
    return rtLaunchKernelByFuncHandleV3(function, blocks, &extended, stream, NULL);
}

ACL_API aclError aclrtLaunchKernelV2Impl(aclrtFuncHandle function, uint32_t blocks, const void *args, size_t size,
                                         void *config, aclrtStream stream) {
    ACL_NEED(rtsLaunchKernelWithDevArgs);
    return rtsLaunchKernelWithDevArgs(function, blocks, stream, config, args, (uint32_t)size, NULL);
}

ACL_API aclError aclrtLaunchKernelWithConfigImpl(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream,
                                                 void *config, aclrtArgsHandle args, void *reserve) {
    ACL_NEED(rtsLaunchKernelWithConfig);
    return rtsLaunchKernelWithConfig(function, blocks, stream, config, args, reserve);
}

ACL_API aclError aclrtLaunchKernelWithHostArgsImpl(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream,
                                                   void *config, void *args, size_t size, void *holders,
                                                   size_t holder_count) {
    ACL_NEED(rtsLaunchKernelWithHostArgs);
    return rtsLaunchKernelWithHostArgs(function, blocks, stream, config, args, (uint32_t)size, holders,
                                       (uint32_t)holder_count);
}

ACL_API aclError aclrtLaunchKernelWithArgsArrayImpl(void *function, uint32_t blocks, aclrtStream stream, void *config,
                                                    void **args) {
    return rtLaunchKernelWithArgsArray(function, blocks, stream, config, args);
}

ACL_API aclError aclrtLaunchSIMTKernelWithHostArgsImpl(void *function, struct cann_dim3 grid, struct cann_dim3 block,
                                                       size_t scratch, aclrtStream stream, void *config, void *args,
                                                       size_t size, void *holders, size_t holder_count) {
    return rtLaunchSIMTKernelWithHostArgs(function, grid, block, scratch, stream, config, args, (uint32_t)size, holders,
                                          (uint32_t)holder_count);
}

ACL_API aclError aclrtLaunchSIMTKernelWithArgsArrayImpl(void *function, struct cann_dim3 grid, struct cann_dim3 block,
                                                        size_t scratch, aclrtStream stream, void *config, void **args) {
    return rtLaunchSIMTKernelWithArgsArray(function, grid, block, scratch, stream, config, args);
}
