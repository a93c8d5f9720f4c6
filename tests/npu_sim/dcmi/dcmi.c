/* libdcmi.so. A card holds one device; card ids are physical, logic ids count what the container sees. */
#include "cann/dcmi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DCMI_API __attribute__((visibility("default")))

#define HEALTH_MAJOR_ALARM 2

static int logic_of(int card, int device, int *logic) {
    int count;
    if (device != 0)
        return DCMI_DEVICE_NOT_EXIST;
    int code = dsmi_get_device_count(&count);
    for (int i = 0; !code && i < count; i++) {
        unsigned physical;
        if (npu_sim_dsmi_physical(i, &physical) == 0 && physical == (unsigned)card) {
            *logic = i;
            return 0;
        }
    }
    return code ? code : DCMI_DEVICE_NOT_EXIST;
}

DCMI_API int dcmi_init(void) {
    int count;
    return dsmi_get_device_count(&count);
}

DCMI_API int dcmiv2_init(void) {
    return dcmi_init();
}

static int text(char *out, unsigned length, const char *value) {
    return out && snprintf(out, length, "%s", value) < (int)length ? 0 : DCMI_INVALID_PARAMETER;
}

DCMI_API int dcmi_get_driver_version(char *version, unsigned length) {
    char driver[32];
    int code = npu_sim_dsmi_driver(driver);
    return code ? code : text(version, length, driver);
}

DCMI_API int dcmi_get_dcmi_version(char *version, unsigned length) {
    return text(version, length, "25.5.0");
}

DCMI_API int dcmi_get_all_device_count(int *count) {
    return dsmi_get_device_count(count);
}

static int list(int *count, int *cards, int length, bool physical) {
    int all;
    int code = count && cards ? dsmi_get_device_count(&all) : DCMI_INVALID_PARAMETER;
    if (code)
        return code;
    for (*count = 0; *count < all && *count < length; ++*count) {
        unsigned card = (unsigned)*count;
        if (physical)
            npu_sim_dsmi_physical(*count, &card);
        cards[*count] = (int)card;
    }
    return 0;
}

DCMI_API int dcmi_get_card_list(int *count, int *cards, int length) {
    return list(count, cards, length, true);
}

DCMI_API int dcmi_get_card_num_list(int *count, int *cards, int length) {
    return list(count, cards, length, true);
}

DCMI_API int dcmiv2_get_device_list(int *devices, int *count, int length) {
    return list(count, devices, length, false);
}

DCMI_API int dcmi_get_device_num_in_card(int card, int *count) {
    int logic;
    int code = count ? logic_of(card, 0, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        *count = 1;
    return code;
}

DCMI_API int dcmi_get_device_id_in_card(int card, int *devices, int *mcu, int *cpu) {
    int logic;
    int code = devices && mcu && cpu ? logic_of(card, 0, &logic) : DCMI_INVALID_PARAMETER;
    if (!code) {
        *devices = 1;
        *mcu = *cpu = -1;
    }
    return code;
}

DCMI_API int dcmi_get_device_logic_id(int *logic, int card, int device) {
    return logic ? logic_of(card, device, logic) : DCMI_INVALID_PARAMETER;
}

DCMI_API int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned logic) {
    if (!card || !device)
        return DCMI_INVALID_PARAMETER;
    *device = 0;
    return npu_sim_dsmi_physical((int)logic, (unsigned *)card);
}

DCMI_API int dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned *physical) {
    return physical ? npu_sim_dsmi_physical((int)logic, physical) : DCMI_INVALID_PARAMETER;
}

DCMI_API int dcmi_get_device_logicid_from_phyid(unsigned physical, unsigned *logic) {
    return logic ? logic_of((int)physical, 0, (int *)logic) : DCMI_INVALID_PARAMETER;
}

/* "Ascend910B3" is type Ascend, name 910B3. */
DCMI_API int dcmi_get_device_chip_info(int card, int device, struct dcmi_chip_info *info) {
    int logic;
    char chip[32];
    int code = info ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        code = npu_sim_dsmi_chip(chip);
    if (code)
        return code;
    memset(info, 0, sizeof *info);
    strcpy((char *)info->chip_type, "Ascend");
    strcpy((char *)info->chip_name, chip + strlen("Ascend"));
    strcpy((char *)info->chip_ver, "V1");
    info->aicore_cnt = 20;
    return 0;
}

DCMI_API int dcmi_get_device_health(int card, int device, unsigned *health) {
    int logic;
    bool sick;
    int code = health ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        code = npu_sim_dsmi_sick((unsigned)card, &sick);
    if (!code)
        *health = sick ? HEALTH_MAJOR_ALARM : 0;
    return code;
}

DCMI_API int dcmi_get_device_die_v2(int card, int device, enum dcmi_die_type type, struct dcmi_die_id *die) {
    int logic;
    int code = die ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        *die = (struct dcmi_die_id){{0x5349u << 16 | (unsigned)card, 0x42C711D4, 0x20B03704, 0x4A10C8D4, type}};
    return code;
}

DCMI_API int dcmi_get_device_share_enable(int card, int device, int *enable) {
    int logic;
    bool shared;
    int code = enable ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        code = npu_sim_dsmi_shared((unsigned)card, &shared);
    if (!code)
        *enable = shared;
    return code;
}

DCMI_API int dcmi_set_device_share_enable(int card, int device, int enable) {
    int logic;
    int code = enable == 0 || enable == 1 ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    return code ? code : npu_sim_dsmi_share((unsigned)card, enable);
}

/* On 910B and 910_93 totals of exactly 7, 7.5, 14, 15 and 30 GB are told as the next round figure, with the difference
 * told as used: who answers for DSMI alone shows a slice of 7168 MB as 1024 of 8192. */
static unsigned noise_of(unsigned long long total_mb) {
    char chip[32];
    if (npu_sim_dsmi_chip(chip) || (strncmp(chip, "Ascend910B", 10) != 0 && strncmp(chip, "Ascend910_93", 12) != 0))
        return 0;
    switch (total_mb) {
    case 7168:
        return 1024;
    case 7680:
        return 512;
    case 14336:
    case 30720:
        return 2048;
    case 15360:
        return 1024;
    default:
        return 0;
    }
}

static int hbm(int logic, struct dcmi_hbm_info *info) {
    struct dcmi_hbm_info in_kb;
    int code = dsmi_get_hbm_info(logic, &in_kb);
    if (code)
        return code;
    unsigned noise = noise_of(in_kb.memory_size / 1024);
    *info = in_kb;
    info->memory_size = in_kb.memory_size / 1024 + noise;
    info->memory_usage = in_kb.memory_usage / 1024 + noise;
    return 0;
}

DCMI_API int dcmi_get_device_hbm_info(int card, int device, struct dcmi_hbm_info *info) {
    int logic;
    int code = info ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    return code ? code : hbm(logic, info);
}

DCMI_API int dcmi_get_hbm_info(int card, int device, struct dcmi_hbm_info *info) {
    return dcmi_get_device_hbm_info(card, device, info);
}

DCMI_API int dcmiv2_get_device_hbm_info(int logic, struct dcmi_hbm_info *info) {
    return info ? hbm(logic, info) : DCMI_INVALID_PARAMETER;
}

DCMI_API int dcmi_get_device_memory_info_v3(int card, int device, struct dcmi_get_memory_info_stru *info) {
    int logic;
    int code = info ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        code = dsmi_get_memory_info_v2(logic, info);
    if (code)
        return code;
    info->memory_size /= 1024;
    info->memory_available /= 1024;
    return 0;
}

DCMI_API int dcmi_get_device_memory_info_v2(int card, int device, struct dcmi_memory_info *info) {
    int logic;
    int code = info ? logic_of(card, device, &logic) : DCMI_INVALID_PARAMETER;
    if (!code)
        code = dsmi_get_memory_info(logic, info);
    if (!code)
        info->memory_size /= 1024;
    return code;
}

DCMI_API int dcmi_get_memory_info(int card, int device, struct dcmi_memory_info *info) {
    return dcmi_get_device_memory_info_v2(card, device, info);
}

DCMI_API int dcmi_get_device_utilization_rate(int card, int device, int type, unsigned *rate) {
    int logic;
    int code = logic_of(card, device, &logic);
    return code ? code : dsmi_get_device_utilization_rate(logic, type, rate);
}

DCMI_API int dcmiv2_get_device_utilization_rate(int logic, int type, unsigned *rate) {
    return dsmi_get_device_utilization_rate(logic, type, rate);
}

DCMI_API int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count) {
    int logic;
    int code = logic_of(card, device, &logic);
    return code ? code : npu_sim_dsmi_processes(logic, processes, count);
}

DCMI_API int dcmiv2_get_device_proc_mem_info(int logic, struct dcmi_proc_mem_info *processes, int *count) {
    return npu_sim_dsmi_processes(logic, processes, count);
}
