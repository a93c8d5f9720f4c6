#include "runtime.h"

#include <stdlib.h>
#include <string.h>

rtError_t rt_error(int driver_code) {
    switch (driver_code) {
    case 0:
        return 0;
    case DRV_NO_DEVICE:
    case DRV_INVALID_DEVICE:
        return RT_INVALID_DEVICE;
    case DRV_INVALID_VALUE:
    case DRV_INVALID_HANDLE:
        return RT_PARAM_INVALID;
    case DRV_OUT_OF_MEMORY:
        return RT_OUT_OF_MEMORY;
    case DRV_NOT_SUPPORTED:
        return RT_FEATURE_NOT_SUPPORTED;
    default:
        return RT_DRIVER_ERROR;
    }
}

/* ASCEND_RT_VISIBLE_DEVICES: indices among the container's cards. Read up to the first that makes no sense. */
static uint32_t visible(uint32_t cards, int32_t index[64]) {
    const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
    uint32_t count = 0;
    if (!list || !*list) {
        for (; count < cards; count++)
            index[count] = (int32_t)count;
        return count;
    }
    while (count < 64 && *list >= '0' && *list <= '9') {
        char *end;
        unsigned long value = strtoul(list, &end, 10);
        bool known = false;
        for (uint32_t i = 0; i < count; i++)
            known |= index[i] == (int32_t)value;
        if (value >= cards || known || (*end && *end != ','))
            break;
        index[count++] = (int32_t)value;
        list = *end ? end + 1 : end;
    }
    return count;
}

static rtError_t devices(uint32_t *count, int32_t index[64]) {
    uint32_t cards;
    int code = drvGetDevNum(&cards);
    if (code)
        return rt_error(code);
    *count = visible(cards, index);
    return 0;
}

rtError_t rt_index(int32_t device, int32_t *index) {
    uint32_t count;
    int32_t all[64];
    rtError_t error = devices(&count, all);
    if (error)
        return error;
    if (device < 0 || (uint32_t)device >= count)
        return RT_INVALID_DEVICE;
    *index = all[device];
    return 0;
}

rtError_t rt_card(int32_t device, uint32_t *card) {
    int32_t index;
    rtError_t error = rt_index(device, &index);
    return error ? error : rt_error(drvDeviceGetPhyIdByIndex((uint32_t)index, card));
}

RT_API rtError_t rtGetDeviceCount(int32_t *count) {
    SIM_ENTER(rtGetDeviceCount);
    if (!count)
        return RT_PARAM_INVALID;
    uint32_t all;
    int32_t index[64];
    rtError_t error = devices(&all, index);
    if (!error)
        *count = (int32_t)all;
    return error;
}

RT_API rtError_t rtGetDevice(int32_t *device) {
    SIM_ENTER(rtGetDevice);
    if (!device)
        return RT_PARAM_INVALID;
    RT_CURRENT(context);
    *device = context->device;
    return 0;
}

RT_API rtError_t rtGetSocVersion(char *version, uint32_t length) {
    SIM_ENTER(rtGetSocVersion);
    struct npu_sim_machine machine;
    if (!version || npu_sim_machine(&machine) || strlen(machine.chip) >= length)
        return RT_PARAM_INVALID;
    strcpy(version, machine.chip);
    return 0;
}

RT_API rtError_t rtGetVisibleDeviceIdByLogicDeviceId(int32_t logic, int32_t *visible_id) {
    SIM_ENTER(rtGetVisibleDeviceIdByLogicDeviceId);
    uint32_t count;
    int32_t index[64];
    rtError_t error = devices(&count, index);
    for (uint32_t i = 0; !error && visible_id && i < count; i++)
        if (index[i] == logic) {
            *visible_id = (int32_t)i;
            return 0;
        }
    return error ? error : RT_INVALID_DEVICE;
}

RT_API rtError_t rtGetLogicDevIdByUserDevId(int32_t user, int32_t *logic) {
    SIM_ENTER(rtGetLogicDevIdByUserDevId);
    return logic ? rt_index(user, logic) : RT_PARAM_INVALID;
}

RT_API rtError_t rtGetDevicePhyIdByIndex(uint32_t index, uint32_t *id) {
    SIM_ENTER(rtGetDevicePhyIdByIndex);
    return id ? rt_error(drvDeviceGetPhyIdByIndex(index, id)) : RT_PARAM_INVALID;
}

RT_API rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length) {
    SIM_ENTER(rtGetC2cCtrlAddr);
    (void)address;
    (void)length;
    return RT_FEATURE_NOT_SUPPORTED;
}
