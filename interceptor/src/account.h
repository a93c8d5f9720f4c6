/* The one accounting core under all layers: what a call takes of a card and what a free gives back. */
#ifndef VNPU_ACCOUNT_H
#define VNPU_ACCOUNT_H

#include "process.h"

/* Where physical memory is asked for: in the properties of acl, of the runtime and of the driver alike. */
enum { VNPU_SIDE_DEVICE = 1 };

/* Pages that `bytes` take when the device rounds to pages of `page` bytes; 0 when no card could hold so many. */
uint64_t vnpu_pages(uint64_t bytes, uint64_t page);

/* Before the device is asked. False: the quota is used up. */
bool vnpu_take(struct vnpu_process *self, int card, uint64_t pages, bool overhead);
/* After the device did not give it, or has it back. */
void vnpu_give(struct vnpu_process *self, int card, uint64_t pages, bool overhead);

/* What an upper call took by itself, while it was not known yet whether the driver's calls reach us. */
struct vnpu_taken {
    int card; /* VNPU_NO_CARD: nothing */
    uint64_t pages;
};

/* Of the upper call that this thread is in; NULL for none. */
extern __thread struct vnpu_taken *vnpu_taken_above;
/* A call of the driver is reached: it counts, and what was taken above is given back before that. */
void vnpu_stand_aside(struct vnpu_process *self);

/* Keeps in mind what was taken, under the pointer or handle that the device gave. */
bool vnpu_keep(struct vnpu_process *self, enum vnpu_kind kind, uint64_t key, int card, uint64_t pages, bool overhead);

/* The device freed all that this process held of a card. */
void vnpu_forget_card(struct vnpu_process *self, int card);
void vnpu_forget_pools(struct vnpu_process *self, int card); /* hooks_driver.c */

#endif
