/* libdrvdsmi_host.so: what the driver tells management tools. It only looks: a tool takes no slot of the machine. */
#include "../card/file.h"
#include "../card/memory.h"
#include "../card/schedule.h"
#include "cann/dcmi.h"

#include <stdlib.h>
#include <string.h>

#define DSMI_API __attribute__((visibility("default")))

#define RATE_DDR     1
#define RATE_AI_CORE 2
#define RATE_HBM     6
#define RATE_NPU     13

static struct sim_state *machine(void) {
    static _Atomic(struct sim_state *) mapped;
    struct sim_state *seen = atomic_load(&mapped);
    if (seen)
        return seen;
    struct sim_state *made = sim_file_open(sim_file_path(), true);
    return made && !atomic_compare_exchange_strong(&mapped, &seen, made) ? seen : made;
}

/* Logic ids count the cards that the container has. */
static bool physical(const struct sim_state *state, int logic, uint32_t *card) {
    uint32_t ids[NPU_SIM_CARDS];
    uint32_t count = sim_visible(state, ids);
    if (logic < 0 || (uint32_t)logic >= count)
        return false;
    *card = ids[logic];
    return true;
}

DSMI_API int npu_sim_dsmi_physical(int logic, unsigned *card) {
    struct sim_state *state = machine();
    return state && physical(state, logic, card) ? 0 : DCMI_DEVICE_NOT_EXIST;
}

DSMI_API int npu_sim_dsmi_chip(char name[32]) {
    struct sim_state *state = machine();
    if (!state)
        return DCMI_DEVICE_NOT_EXIST;
    memcpy(name, state->settings.chip, 32);
    return 0;
}

DSMI_API int npu_sim_dsmi_driver(char version[32]) {
    struct sim_state *state = machine();
    if (!state)
        return DCMI_DEVICE_NOT_EXIST;
    memcpy(version, state->settings.driver, 32);
    return 0;
}

DSMI_API int npu_sim_dsmi_sick(unsigned card, bool *sick) {
    struct sim_state *state = machine();
    if (!state)
        return DCMI_DEVICE_NOT_EXIST;
    *sick = atomic_load(&state->settings.sick) >> card & 1;
    return 0;
}

DSMI_API int npu_sim_dsmi_shared(unsigned card, bool *shared) {
    struct sim_state *state = machine();
    if (!state)
        return DCMI_DEVICE_NOT_EXIST;
    *shared = atomic_load(&state->settings.shared) >> card & 1;
    return 0;
}

DSMI_API int npu_sim_dsmi_share(unsigned card, bool share) {
    struct sim_state *state = machine();
    if (!state)
        return DCMI_DEVICE_NOT_EXIST;
    if (atomic_load(&state->settings.unshareable) >> card & 1)
        return DCMI_NOT_SUPPORTED;
    if (share)
        atomic_fetch_or(&state->settings.shared, (uint64_t)1 << card);
    else
        atomic_fetch_and(&state->settings.shared, ~((uint64_t)1 << card));
    return 0;
}

DSMI_API int dsmi_get_device_count(int *count) {
    struct sim_state *state = machine();
    uint32_t card;
    if (!state || !count)
        return DCMI_INVALID_PARAMETER;
    for (*count = 0; physical(state, *count, &card); ++*count) {
    }
    return 0;
}

/* The caller frees it. */
static int read_memory(int logic, struct sim_state **state, struct sim_memory **memory) {
    uint32_t card;
    *state = machine();
    if (!*state || !physical(*state, logic, &card))
        return DCMI_DEVICE_NOT_EXIST;
    *memory = malloc(sizeof **memory);
    if (!*memory)
        return DCMI_NOT_SUPPORTED;
    sim_memory_read(*state, card, *memory);
    return 0;
}

static bool has_hbm(const struct sim_state *state) {
    return strncmp(state->settings.chip, "Ascend310", 9) != 0;
}

struct usage {
    uint64_t total, used; /* bytes */
};

static int usage(int logic, bool hbm, struct usage *result) {
    struct sim_state *state;
    struct sim_memory *memory;
    int code = read_memory(logic, &state, &memory);
    if (code)
        return code;
    bool there = has_hbm(state) == hbm;
    *result = (struct usage){there ? state->settings.memory_bytes : 0, there ? memory->used : 0};
    free(memory);
    return 0;
}

static unsigned percent(const struct usage *of) {
    return of->total ? (unsigned)(of->used * 100 / of->total) : 0;
}

DSMI_API int dsmi_get_hbm_info(int logic, struct dcmi_hbm_info *info) {
    struct usage hbm;
    int code = info ? usage(logic, true, &hbm) : DCMI_INVALID_PARAMETER;
    if (!code)
        *info = (struct dcmi_hbm_info){
            .memory_size = hbm.total / 1024, .freq = 1600, .memory_usage = hbm.used / 1024, .temp = 40};
    return code;
}

DSMI_API int dsmi_get_memory_info_v2(int logic, struct dcmi_get_memory_info_stru *info) {
    struct usage ddr;
    int code = info ? usage(logic, false, &ddr) : DCMI_INVALID_PARAMETER;
    if (!code)
        *info = (struct dcmi_get_memory_info_stru){.memory_size = ddr.total / 1024,
                                                   .memory_available = (ddr.total - ddr.used) / 1024,
                                                   .freq = 1600,
                                                   .hugepagesize = 2048,
                                                   .utiliza = percent(&ddr)};
    return code;
}

DSMI_API int dsmi_get_memory_info(int logic, struct dcmi_memory_info *info) {
    struct usage ddr;
    int code = info ? usage(logic, false, &ddr) : DCMI_INVALID_PARAMETER;
    if (!code)
        *info = (struct dcmi_memory_info){ddr.total / 1024, 1600, percent(&ddr)};
    return code;
}

/* Does the card run a kernel at this moment? */
static int busy(int logic, unsigned *rate) {
    struct sim_state *state = machine();
    uint32_t card;
    if (!state || !physical(state, logic, &card))
        return DCMI_DEVICE_NOT_EXIST;
    struct sim_schedule *schedule = malloc(sizeof *schedule);
    if (!schedule)
        return DCMI_NOT_SUPPORTED;
    sim_schedule_look(state, schedule, sim_now());
    *rate = schedule->cards[card].stream ? 100 : 0;
    free(schedule);
    return 0;
}

DSMI_API int dsmi_get_device_utilization_rate(int logic, int type, unsigned *rate) {
    if (!rate)
        return DCMI_INVALID_PARAMETER;
    if (type == RATE_AI_CORE || type == RATE_NPU)
        return busy(logic, rate);
    if (type != RATE_DDR && type != RATE_HBM)
        return DCMI_NOT_SUPPORTED;
    struct usage memory;
    int code = usage(logic, type == RATE_HBM, &memory);
    if (!code)
        *rate = percent(&memory);
    return code;
}

DSMI_API int npu_sim_dsmi_processes(int logic, struct dcmi_proc_mem_info *processes, int *count) {
    struct sim_state *state;
    struct sim_memory *memory;
    int code = processes && count ? read_memory(logic, &state, &memory) : DCMI_INVALID_PARAMETER;
    if (code)
        return code;
    const int room = 32; /* as clients of DCMI allot */
    *count = 0;
    for (uint32_t i = 0; i < memory->lengths[SIM_MEMORY_PROCESSES] && *count < room; i++) {
        uint64_t bytes = memory->processes[i].app + memory->processes[i].overhead;
        if (bytes)
            processes[(*count)++] = (struct dcmi_proc_mem_info){state->processes[memory->processes[i].slot].pid, bytes};
    }
    free(memory);
    return 0;
}
