/* A device that is given back: the driver frees all that the process held of it, without a call for each. */
#include <stdint.h>

#include "account.h"
#include "call.h"
#include "devices.h"

/* Devices are counted by CANN: only with the last use everything goes, and whether that was it, it tells itself. */
static bool still_in_use(enum vnpu_library library, int32_t device) {
    uint32_t flags;
    int32_t active = 1;
    const char *name = library == ACL ? "aclrtGetPrimaryCtxState" : "rtGetPrimaryCtxState";
    int (*state)(int32_t, uint32_t *, int32_t *) = (int (*)(int32_t, uint32_t *, int32_t *))vnpu_foreign(library, name);

    /* Where it cannot be told, the books keep what the device may still hold. */
    return state == NULL || state(device, &flags, &active) != 0 || active != 0;
}

static int reset(enum vnpu_hook hook, enum vnpu_library library, int32_t device, bool force) {
    struct vnpu_call call;

    if (!vnpu_begin(&call, hook, library))
        return call.result;
    int card = vnpu_card_of_user(call.self, device);
    call.result = ((int (*)(int32_t))call.real)(device);
    if (call.result == 0 && call.outermost && card != VNPU_NO_CARD && (force || !still_in_use(library, device))) {
        vnpu_forget_card(call.self, card);
        vnpu_forget_pools(call.self, card);
    }
    return vnpu_end(&call);
}

VNPU_EXPORT int aclrtResetDevice(int32_t device);
int aclrtResetDevice(int32_t device) {
    return reset(VNPU_HOOK_aclrtResetDevice, ACL, device, false);
}

VNPU_EXPORT int aclrtResetDeviceForce(int32_t device);
int aclrtResetDeviceForce(int32_t device) {
    return reset(VNPU_HOOK_aclrtResetDeviceForce, ACL, device, true);
}

VNPU_EXPORT int rtDeviceReset(int32_t device);
int rtDeviceReset(int32_t device) {
    return reset(VNPU_HOOK_rtDeviceReset, RT, device, false);
}

VNPU_EXPORT int rtDeviceResetForce(int32_t device);
int rtDeviceResetForce(int32_t device) {
    return reset(VNPU_HOOK_rtDeviceResetForce, RT, device, true);
}
