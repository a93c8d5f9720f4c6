#include "driver.h"

void npu_sim_reset(uint32_t card) {
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    struct block *block;
    struct block removed;
    while ((block = block_of_card(d, card, BLOCK_MEMORY))) {
        block_remove(d, block->at, BLOCK_MEMORY, &removed);
        space_give(d, &removed);
        sim_memory_give(self, card, removed.bytes, removed.overhead);
    }
    physical_reset(self, d, card);
    pools_reset(self, d, card);
    pthread_mutex_unlock(&d->lock);
}
