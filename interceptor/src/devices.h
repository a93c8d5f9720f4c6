/* From the ids of each layer to the cards of the region.
 *
 *     acl and rt    index into ASCEND_RT_VISIBLE_DEVICES, whose entries are positions among the container's cards
 *     HAL           the card's own number, as in ASCEND_VISIBLE_DEVICES
 *     dcmi, dsmi    logic id: position among the container's cards */
#ifndef VNPU_DEVICES_H
#define VNPU_DEVICES_H

#include "process.h"

enum { VNPU_NO_CARD = -1 };

int vnpu_card_of_hal(const struct vnpu_process *self, uint32_t device);
int vnpu_card_of_user(const struct vnpu_process *self, int32_t device);
int vnpu_card_of_logic(const struct vnpu_process *self, uint32_t device);
/* The card that this thread's calls go to; VNPU_NO_CARD when it has set none. */
int vnpu_card_of_thread(const struct vnpu_process *self);

#endif
