#include "runtime.h"

#include <string.h>

/* Of the attributes, those that name HBM in some form; the plain ones (12 and up) name what the chip has. */
static bool names_hbm(int kind) {
    return kind == 1 || kind == 4 || kind == 5 || (kind >= 8 && kind <= 11);
}

static bool names_ddr(int kind) {
    return kind == 0 || kind == 2 || kind == 3 || kind == 6 || kind == 7;
}

static rtError_t ask(uint32_t card, unsigned type, struct MemPhyInfo *phy) {
    struct MemInfo info;
    int code = halMemGetInfo(card, type, &info);
    *phy = info.phy_info;
    return rt_error(code);
}

/* 0 of 0 where the chip does not have that kind of memory. */
static rtError_t memory(int kind, size_t *free_bytes, size_t *total) {
    RT_CURRENT(context);
    if (!free_bytes || !total || kind < 0 || kind > 17)
        return RT_PARAM_INVALID;
    struct MemPhyInfo phy = {0};
    rtError_t error = 0;
    if (!names_ddr(kind))
        error = ask(context->card, 2, &phy);
    if (!error && !names_hbm(kind) && phy.total == 0)
        error = ask(context->card, 1, &phy);
    if (error)
        return error;
    *free_bytes = phy.free;
    *total = phy.total;
    return 0;
}

RT_API rtError_t rtMemGetInfo(size_t *free_bytes, size_t *total) {
    SIM_ENTER(rtMemGetInfo);
    return memory(12, free_bytes, total);
}

RT_API rtError_t rtMemGetInfoEx(int kind, size_t *free_bytes, size_t *total) {
    SIM_ENTER(rtMemGetInfoEx);
    return memory(kind, free_bytes, total);
}

RT_API rtError_t rtsMemGetInfo(int kind, size_t *free_bytes, size_t *total) {
    SIM_ENTER(rtsMemGetInfo);
    return memory(kind, free_bytes, total);
}

RT_API rtError_t rtMemGetInfoByType(int32_t device, uint32_t type, rtMemInfo_t *info) {
    SIM_ENTER(rtMemGetInfoByType);
    uint32_t card;
    rtError_t error = info ? rt_card(device, &card) : RT_PARAM_INVALID;
    if (error)
        return error;
    if (type != 1 && type != 2)
        return RT_FEATURE_NOT_SUPPORTED;
    struct MemPhyInfo phy;
    error = ask(card, type, &phy);
    if (error)
        return error;
    info->phyInfo.total = phy.total;
    info->phyInfo.free = phy.free;
    info->phyInfo.huge_total = phy.huge_total;
    info->phyInfo.huge_free = phy.huge_free;
    info->phyInfo.giant_total = info->phyInfo.giant_free = 0;
    return 0;
}

/* One line for everything: who allocated what is not kept per module. */
RT_API rtError_t rtGetMemUsageInfo(uint32_t device, rtMemUsageInfo_t *infos, size_t room, size_t *count) {
    SIM_ENTER(rtGetMemUsageInfo);
    uint32_t card;
    rtError_t error = infos && room && count ? rt_card((int32_t)device, &card) : RT_PARAM_INVALID;
    struct MemPhyInfo phy;
    if (!error)
        error = ask(card, 2, &phy);
    if (error)
        return error;
    memset(infos, 0, sizeof *infos);
    strcpy(infos->name, "APP");
    infos->curMemSize = infos->memPeakSize = phy.total - phy.free;
    *count = 1;
    return 0;
}
