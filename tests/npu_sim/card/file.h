/* Making, finding and mapping the file of a simulated machine. */
#ifndef NPU_SIM_FILE_H
#define NPU_SIM_FILE_H

#include "npu_sim/state.h"

/* NPU_SIM_STATE, or the default path. */
const char *sim_file_path(void);

/* Maps the machine at `path`. With `create`, makes one from NPU_SIM_* of the environment when there is none; two who do
 * that at once get the same. NULL with errno: ENOENT none there, EPROTO not a file of this version, EINVAL a setting in
 * the environment makes no sense (one line on stderr says which). */
struct sim_state *sim_file_open(const char *path, bool create);

/* Sets a knob by its name ("memory_mib", "kernel_us", ...). False: no such knob, or a value that makes no sense; the
 * number of cards and the chip can be set while the machine is made only. */
bool sim_setting(struct sim_settings *settings, const char *name, const char *value, bool making);

/* The names that sim_setting knows, NULL at the end. */
extern const char *const sim_setting_names[];

/* ASCEND_VISIBLE_DEVICES: the physical ids of the cards that the container has, in its order; unset means all, empty
 * none. Read up to the first that makes no sense. Returns how many. */
uint32_t sim_visible(const struct sim_state *state, uint32_t ids[NPU_SIM_CARDS]);

uint64_t sim_now(void); /* ns, monotonic */

#endif
