#include "impl.h"

#include <unistd.h>

ACL_API aclError aclrtGetDeviceCountImpl(uint32_t *count) {
    return count ? rtGetDeviceCount((int32_t *)count) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtSetDeviceImpl(int32_t device) {
    return rtSetDevice(device);
}

ACL_API aclError aclrtGetDeviceImpl(int32_t *device) {
    return device ? rtGetDevice(device) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtResetDeviceImpl(int32_t device) {
    return rtDeviceReset(device);
}

ACL_API aclError aclrtResetDeviceForceImpl(int32_t device) {
    return rtDeviceResetForce(device);
}

ACL_API aclError aclrtSynchronizeDeviceImpl(void) {
    return rtDeviceSynchronize();
}

ACL_API aclError aclrtSynchronizeDeviceWithTimeoutImpl(int32_t timeout) {
    return rtDeviceSynchronizeWithTimeout(timeout);
}

ACL_API aclError aclrtCreateContextImpl(aclrtContext *context, int32_t device) {
    return rtCtxCreate(context, 0, device);
}

ACL_API aclError aclrtDestroyContextImpl(aclrtContext context) {
    return rtCtxDestroy(context);
}

ACL_API aclError aclrtSetCurrentContextImpl(aclrtContext context) {
    return rtCtxSetCurrent(context);
}

ACL_API aclError aclrtGetCurrentContextImpl(aclrtContext *context) {
    return rtCtxGetCurrent(context);
}

ACL_API aclError aclrtGetPrimaryCtxStateImpl(int32_t device, uint32_t *flags, int32_t *active) {
    return rtGetPrimaryCtxState(device, flags, active);
}

ACL_API aclError aclrtGetRunModeImpl(int *mode) {
    if (!mode)
        return ACL_INVALID_PARAM;
    *mode = 1; /* the application runs on the host */
    return 0;
}

ACL_API aclError aclrtDeviceCanAccessPeerImpl(int32_t *can, int32_t device, int32_t peer) {
    if (!can)
        return ACL_INVALID_PARAM;
    *can = device != peer;
    return 0;
}

ACL_API aclError aclrtDeviceEnablePeerAccessImpl(int32_t peer, uint32_t flags) {
    (void)peer;
    (void)flags;
    return 0;
}

ACL_API aclError aclrtDeviceGetBareTgidImpl(int32_t *tgid) {
    if (!tgid)
        return ACL_INVALID_PARAM;
    *tgid = getpid();
    return 0;
}

ACL_API aclError aclrtGetLogicDevIdByUserDevIdImpl(int32_t user, int32_t *logic) {
    return rtGetLogicDevIdByUserDevId(user, logic);
}

ACL_API aclError aclrtGetPhyDevIdByLogicDevIdImpl(int32_t logic, int32_t *physical) {
    return physical ? rtGetDevicePhyIdByIndex((uint32_t)logic, (uint32_t *)physical) : ACL_INVALID_PARAM;
}

/* Cores are not simulated: limits are taken and change nothing. */
#define CUBE_CORES 20

ACL_API aclError aclrtSetDeviceResLimitImpl(int32_t device, int type, uint32_t value) {
    (void)device;
    (void)type;
    return value ? 0 : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtGetDeviceResLimitImpl(int32_t device, int type, uint32_t *value) {
    (void)device;
    if (!value)
        return ACL_INVALID_PARAM;
    *value = type == 0 ? CUBE_CORES : 2 * CUBE_CORES;
    return 0;
}

ACL_API aclError aclrtSetStreamResLimitImpl(aclrtStream stream, int type, uint32_t value) {
    (void)stream;
    return aclrtSetDeviceResLimitImpl(0, type, value);
}

ACL_API aclError aclrtGetStreamResLimitImpl(aclrtStream stream, int type, uint32_t *value) {
    (void)stream;
    return aclrtGetDeviceResLimitImpl(0, type, value);
}

ACL_API const char *aclrtGetSocNameImpl(void) {
    static char name[64];
    return rtGetSocVersion(name, sizeof name) ? NULL : name;
}
