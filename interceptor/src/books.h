/* What a process holds of each card, in pages of 4 KiB, kept so that the sum over all who count never exceeds the
 * quota.
 *
 * Reserve, then call the device; release what the device did not give, or gave back. */
#ifndef VNPU_BOOKS_H
#define VNPU_BOOKS_H

#include <pthread.h>
#include <stdbool.h>

#include "vnpu/region.h"

/* One process's hand on the region. Tests run several in one process, as threads. */
struct vnpu_ledger {
    struct vnpu_region *region;
    uint32_t slot;
    /* A process asks one question at a time for each card; its threads queue here. */
    pthread_mutex_t asking[VNPU_CARDS];
};

struct vnpu_holdings {
    uint64_t held;     /* pages that applications hold, of all processes that count */
    uint64_t overhead; /* pages that the runtime itself holds */
};

/* Takes `pages` of the quota of `card` (an index of the region); false when it is used up. */
bool vnpu_reserve(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages);
void vnpu_release(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages);
/* Memory of the runtime itself: charged, never refused. */
void vnpu_charge_overhead(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages);
void vnpu_release_overhead(struct vnpu_ledger *ledger, uint32_t card, uint64_t pages);

struct vnpu_holdings vnpu_holdings(struct vnpu_region *region, uint32_t card);

#endif
