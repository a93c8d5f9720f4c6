/* The device's own count of memory: what is true, whatever anybody believes. */
#ifndef NPU_SIM_MEMORY_H
#define NPU_SIM_MEMORY_H

#include "process.h"

/* Takes `bytes` of a card for this process; false when the card has not got them. */
bool sim_memory_take(struct sim_self *self, uint32_t card, uint64_t bytes, bool overhead);

void sim_memory_give(struct sim_self *self, uint32_t card, uint64_t bytes, bool overhead);

/* Copies the count of a card as it is now: what the dead held is subtracted. */
void sim_memory_read(const struct sim_state *state, uint32_t card, struct sim_memory *memory);

#endif
