#ifndef NPU_SIM_REPORT_H
#define NPU_SIM_REPORT_H

#include "npu_sim/state.h"

#include <stdio.h>

/* Writes the truth about a machine as JSON; 0, or 1 without memory. */
int sim_report(const struct sim_state *state, FILE *out);

#endif
