/* Who uses the machine, and whether they live: the slots of the file, and what belongs to this process alone. */
#ifndef NPU_SIM_PROCESS_H
#define NPU_SIM_PROCESS_H

#include "npu_sim/state.h"

/* This process as a user of the machine. A forked child starts without one. */
struct sim_self {
    struct sim_state *state;
    uint32_t slot;
    uint32_t generation;
    uint32_t tag;
    pthread_mutex_t memory_lock[NPU_SIM_CARDS]; /* a cell is published by one thread of a process at a time */
    pthread_mutex_t schedule_lock;
    struct sim_schedule *schedule;            /* room for a copy, under schedule_lock */
    struct sim_memory *memory[NPU_SIM_CARDS]; /* likewise, under memory_lock */
    _Atomic(struct sim_driver *) driver;      /* what the driver library keeps per process */
};

/* The slot of this process; taken on the first call. NULL: no machine, or no free slot. */
struct sim_self *sim_self(void);

/* The same, but NULL when this process has not used the machine yet. */
struct sim_self *sim_self_if_joined(void);

/* Does the process that held `slot` at `generation` still live? What the kernel says, at no cost. */
bool sim_alive(const struct sim_state *state, uint32_t slot, uint32_t generation);

/* Has it been killed, though its threads have not all ended yet? Asks /proc; false where that cannot be told. Its slot
 * may still look alive when another of its threads is known to be gone. */
bool sim_dying(const struct sim_state *state, uint32_t slot);

#endif
