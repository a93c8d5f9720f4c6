/* The driver's memory calls: the one place that every version of CANN ends in, so the one place that counts, to the
 * page. What they share. */
#ifndef VNPU_DRIVER_H
#define VNPU_DRIVER_H

#include "call.h"

enum { VNPU_DRIVER_OUT_OF_MEMORY = 6, VNPU_MODULE_RUNTIME = 7 };

#define VNPU_PAGE_HUGE  (2ull << 20)
#define VNPU_PAGE_GIANT (1ull << 30)

/* As vnpu_begin and vnpu_end. Driver functions call each other too, and stand below calls of upper layers that count
 * nothing then: only the outermost of the driver's is `outermost`. */
bool vnpu_driver_begin(struct vnpu_call *call, enum vnpu_hook hook);
int vnpu_driver_end(struct vnpu_call *call);

#endif
