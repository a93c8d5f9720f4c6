/*
 * npu-sim: makes a simulated machine, turns its knobs, and tells the truth about it.
 *
 *   npu-sim create [knob=value ...]   fails if there is one
 *   npu-sim set knob=value ...
 *   npu-sim expect TAG MIB            what processes with NPU_SIM_TAG=TAG should stay within on each card; 0: anything
 *   npu-sim status                    JSON: memory, device time and processes of every card
 *
 * The machine is NPU_SIM_STATE. Exit: 0, 1 with a reason on stderr, 2 for a wrong call.
 */
#include "../card/file.h"
#include "../card/schedule.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(void) {
    fprintf(stderr, "usage: npu-sim create [knob=value ...] | set knob=value ... | expect TAG MIB | status\nknobs:");
    for (const char *const *name = sim_setting_names; *name; name++)
        fprintf(stderr, " %s", *name);
    fprintf(stderr, "\n");
    return 2;
}

static int fail(const char *what) {
    fprintf(stderr, "npu-sim: %s: %s\n", what, strerror(errno));
    return 1;
}

static int wrong(const char *knob) {
    fprintf(stderr, "npu-sim: %s makes no sense\n", knob);
    return 1;
}

static bool set(struct sim_settings *settings, const char *knob, bool making) {
    const char *equals = strchr(knob, '=');
    char name[32];
    if (!equals || (size_t)(equals - knob) >= sizeof name)
        return false;
    memcpy(name, knob, (size_t)(equals - knob));
    name[equals - knob] = '\0';
    return sim_setting(settings, name, equals + 1, making);
}

/* Knobs go through the environment, which is read while the machine is made. */
static int create(int count, char **knobs) {
    struct sim_settings scratch = {.chip = ""};
    for (int i = 0; i < count; i++) {
        if (!set(&scratch, knobs[i], true))
            return wrong(knobs[i]);
        char variable[64] = "NPU_SIM_";
        size_t length = strlen(variable);
        for (const char *at = knobs[i]; *at != '='; at++)
            variable[length++] = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
        setenv(variable, strchr(knobs[i], '=') + 1, 1);
    }
    if (access(sim_file_path(), F_OK) == 0) {
        errno = EEXIST;
        return fail(sim_file_path());
    }
    return sim_file_open(sim_file_path(), true) ? 0 : fail(sim_file_path());
}

static int set_all(struct sim_state *state, int count, char **knobs) {
    for (int i = 0; i < count; i++)
        if (!set(&state->settings, knobs[i], false))
            return wrong(knobs[i]);
    return 0;
}

/* Joins the machine, as one who changes the schedule must. */
static int expect(const char *name, const char *mib) {
    char *end;
    unsigned long long limit = strtoull(mib, &end, 10);
    if (*mib < '0' || *mib > '9' || *end)
        return usage();
    struct sim_self *self = sim_self();
    uint32_t tag;
    if (!self || !sim_schedule_tag(self, name, &tag))
        return 1;
    atomic_store(&self->state->tag_limit[tag], limit << 20);
    return 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "create") == 0)
        return create(argc - 2, argv + 2);
    if (strcmp(verb, "expect") == 0)
        return argc == 4 ? expect(argv[2], argv[3]) : usage();
    bool status = strcmp(verb, "status") == 0 && argc == 2;
    if (!status && (strcmp(verb, "set") != 0 || argc < 3))
        return usage();
    struct sim_state *state = sim_file_open(sim_file_path(), false);
    if (!state)
        return fail(sim_file_path());
    return status ? sim_report(state, stdout) : set_all(state, argc - 2, argv + 2);
}
