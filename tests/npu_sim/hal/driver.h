/* What the driver library keeps for one process. A forked child starts with nothing of it. */
#ifndef NPU_SIM_HAL_DRIVER_H
#define NPU_SIM_HAL_DRIVER_H

#include "../card/memory.h"
#include "../card/process.h"
#include "arena.h"
#include "cann/codes.h"
#include "cann/hal.h"
#include "npu_sim/driver.h"

#define HAL_API __attribute__((visibility("default")))

#define PAGE_NORMAL 4096ull
#define PAGE_HUGE   (2ull << 20)
#define PAGE_GIANT  (1ull << 30)

#define BLOCK_BUCKETS 4096

enum block_kind { BLOCK_MEMORY, BLOCK_HOST, BLOCK_RESERVED, BLOCK_MAPPED, BLOCK_HANDLE };

/* Something that has an address: found by it when it is given back. */
struct block {
    uint64_t at;
    uint64_t bytes; /* as the device counts it */
    enum block_kind kind;
    int size_class;
    uint32_t card;
    bool overhead;
    drv_mem_handle_t *handle; /* of BLOCK_MAPPED and BLOCK_HANDLE */
    struct block *next;
};

struct sim_driver {
    pthread_mutex_t lock; /* everything below */
    struct arena addresses;
    struct arena physical; /* offsets in physical_fd */
    int physical_fd;
    uint64_t physical_end;
    struct block *blocks[BLOCK_BUCKETS];
    uint64_t last_shareable;
    struct pool *pools;
    uint64_t *free_events;
    uint32_t free_event_count, events_used;
    _Atomic bool touched;
    uint32_t visible[NPU_SIM_CARDS]; /* physical ids of the cards that this process may use, in its order */
    uint32_t visible_count;
    uint32_t depth; /* of queues */
};

/* Joins the machine when needed; NULL when that fails. */
struct sim_driver *driver(struct sim_self **self);

/* How a function of the driver begins: what it keeps for this process, or the end. */
#define HAL_ENTER(name, d, self)                                                                                       \
    SIM_ENTER(name);                                                                                                   \
    struct sim_self *self;                                                                                             \
    struct sim_driver *d = driver(&self);                                                                              \
    if (!d)                                                                                                            \
    return DRV_NO_DEVICE

bool driver_sees(const struct sim_driver *driver, uint32_t card);

/* Blocks; under the lock. */
void block_add(struct sim_driver *driver, const struct block *block);
bool block_remove(struct sim_driver *driver, uint64_t at, enum block_kind kind, struct block *block);
struct block *block_find(struct sim_driver *driver, uint64_t at, enum block_kind kind);

/* The first block of a kind on a card; and the one of a kind that holds a whole range. Slow. */
struct block *block_of_card(struct sim_driver *driver, uint32_t card, enum block_kind kind);
struct block *block_around(struct sim_driver *driver, uint64_t at, uint64_t bytes, enum block_kind kind);

/* Addresses for `bytes` of device memory. */
bool space_take(struct sim_driver *driver, uint64_t bytes, struct block *block);
void space_give(struct sim_driver *driver, const struct block *block);

/* What npu_sim_reset has the other parts forget; under the lock. */
void physical_reset(struct sim_self *self, struct sim_driver *driver, uint32_t card);
void pools_reset(struct sim_self *self, struct sim_driver *driver, uint32_t card);

#define ROUND_UP(value, unit) (((value) + (unit) - 1) / (unit) * (unit))

#endif
