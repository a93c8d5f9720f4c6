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

/* Keeps in mind what was taken, under the pointer or handle that the device gave. */
bool vnpu_keep(struct vnpu_process *self, enum vnpu_kind kind, uint64_t key, int card, uint64_t pages, bool overhead);

/* The device freed all that this process held of a card. */
void vnpu_forget_card(struct vnpu_process *self, int card);
void vnpu_forget_pools(struct vnpu_process *self, int card); /* hooks_driver.c */

#endif
