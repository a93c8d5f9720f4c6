/* How a client tells the simulated card what a kernel does: as the first bytes of the kernel's arguments (or of the
 * task description, for launches that have no arguments). Otherwise the name decides: "anything_250us" or
 * "anything_20ms" takes that long, any other name kernel_us of the settings. */
#ifndef NPU_SIM_KERNEL_H
#define NPU_SIM_KERNEL_H

#include <stdint.h>

#define NPU_SIM_KERNEL_MAGIC 0x4c454e52454b494eull

struct npu_sim_kernel {
    uint64_t magic;
    uint64_t ns;
    uint64_t
        group; /* not 0: one of several kernels, each on another card, none of which ends before all have started */
    uint64_t members; /* how many those are; give every such group a number of its own */
};

#endif
