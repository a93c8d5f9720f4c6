#include "npu_sim/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNKNOWN, PLAIN, KNOBS };

static _Atomic(struct npu_sim_call *) calls;

static void enlist(struct npu_sim_call *call) {
    struct npu_sim_call *first = atomic_load(&calls);
    do
        call->next = first;
    while (!atomic_compare_exchange_weak(&calls, &first, call));
}

/* The text behind "name:" in a comma list, or NULL. With `from`, the search goes on behind an earlier answer. */
static const char *knob(const char *list, const char *name, const char *from) {
    size_t length = strlen(name);
    for (const char *at = from ? strchr(from, ',') : list; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && at[length] == ':')
            return at + length + 1;
    }
    return NULL;
}

static void delay(const char *name) {
    const char *value = knob(getenv("NPU_SIM_DELAY"), name, NULL);
    long long us = value ? strtoll(value, NULL, 10) : 0;
    if (us <= 0)
        return;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}

static int failure(const char *name, uint64_t nth) {
    const char *list = getenv("NPU_SIM_FAIL");
    for (const char *at = knob(list, name, NULL); at; at = knob(list, name, at)) {
        char *colon;
        uint64_t which = strtoull(at, &colon, 10);
        if (*colon == ':' && (which == 0 || which == nth))
            return (int)strtol(colon + 1, NULL, 0);
    }
    return 0;
}

static int arm(struct npu_sim_call *call) {
    int armed = UNKNOWN;
    bool has = knob(getenv("NPU_SIM_FAIL"), call->name, NULL) || knob(getenv("NPU_SIM_DELAY"), call->name, NULL);
    if (!atomic_compare_exchange_strong(&call->armed, &armed, has ? KNOBS : PLAIN))
        return armed;
    enlist(call);
    return has ? KNOBS : PLAIN;
}

int npu_sim_armed(struct npu_sim_call *call, uint64_t nth) {
    int armed = atomic_load(&call->armed);
    if ((armed == UNKNOWN ? arm(call) : armed) == PLAIN)
        return 0;
    delay(call->name);
    return failure(call->name, nth);
}

uint64_t npu_sim_calls(const char *name) {
    uint64_t count = 0;
    for (struct npu_sim_call *call = atomic_load(&calls); call; call = call->next)
        if (strcmp(call->name, name) == 0)
            count += atomic_load(&call->count);
    return count;
}
