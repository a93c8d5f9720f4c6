#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_setting_names[] = {
    "cards", "memory_mib", "kernel_us",   "context_mib", "stream_kib", "arbiter",
    "sick",  "shared",     "unshareable", "chip",        "driver",     NULL,
};

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t unit, _Atomic uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
        return false;
    atomic_store(out, value * unit);
    return true;
}

static bool arbiter(const char *text, _Atomic uint64_t *out) {
    bool fifo = strcmp(text, "fifo") == 0;
    if (!fifo && strcmp(text, "rr") != 0)
        return false;
    atomic_store(out, fifo ? SIM_ARBITER_FIFO : SIM_ARBITER_ROUND_ROBIN);
    return true;
}

static bool word(const char *text, const char *start, char out[NPU_SIM_NAME]) {
    if (strncmp(text, start, strlen(start)) != 0 || strlen(text) >= NPU_SIM_NAME)
        return false;
    strcpy(out, text);
    return true;
}

bool sim_setting(struct sim_settings *settings, const char *name, const char *value, bool making) {
    const uint64_t mib = 1 << 20, every_card = (1 << NPU_SIM_CARDS) - 1;
    if (strcmp(name, "memory_mib") == 0)
        return number(value, 1, 1 << 24, mib, &settings->memory_bytes);
    if (strcmp(name, "kernel_us") == 0)
        return number(value, 0, 1000000000, 1000, &settings->kernel_ns);
    if (strcmp(name, "context_mib") == 0)
        return number(value, 0, 1 << 20, mib, &settings->context_bytes);
    if (strcmp(name, "stream_kib") == 0)
        return number(value, 0, 1 << 20, 1 << 10, &settings->stream_bytes);
    if (strcmp(name, "arbiter") == 0)
        return arbiter(value, &settings->arbiter);
    if (strcmp(name, "cards") == 0)
        return making && number(value, 1, NPU_SIM_CARDS, 1, &settings->cards);
    if (strcmp(name, "sick") == 0)
        return number(value, 0, every_card, 1, &settings->sick);
    if (strcmp(name, "shared") == 0)
        return number(value, 0, every_card, 1, &settings->shared);
    if (strcmp(name, "unshareable") == 0)
        return number(value, 0, every_card, 1, &settings->unshareable);
    if (strcmp(name, "driver") == 0)
        return making && word(value, "", settings->driver);
    return strcmp(name, "chip") == 0 && making && word(value, "Ascend", settings->chip);
}

static bool listed(const uint32_t *ids, uint32_t count, uint64_t id) {
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

uint32_t sim_visible(const struct sim_state *state, uint32_t ids[NPU_SIM_CARDS]) {
    const char *list = getenv("ASCEND_VISIBLE_DEVICES");
    uint64_t cards = state->settings.cards;
    uint32_t count = 0;
    if (!list) {
        for (; count < cards; count++)
            ids[count] = count;
        return count;
    }
    while (*list >= '0' && *list <= '9' && count < NPU_SIM_CARDS) {
        char *end;
        uint64_t id = strtoull(list, &end, 10);
        if (id >= cards || listed(ids, count, id))
            break;
        ids[count++] = (uint32_t)id;
        list = *end == ',' ? end + 1 : "";
    }
    return count;
}
