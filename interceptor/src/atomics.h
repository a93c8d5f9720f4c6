/* Atomic access to fields that are plain integers in the shared layouts. */
#ifndef VNPU_ATOMICS_H
#define VNPU_ATOMICS_H

#include <stdbool.h>

#define vnpu_load(place)                 __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define vnpu_load_relaxed(place)         __atomic_load_n((place), __ATOMIC_RELAXED)
#define vnpu_load_ordered(place)         __atomic_load_n((place), __ATOMIC_SEQ_CST)
#define vnpu_store(place, value)         __atomic_store_n((place), (value), __ATOMIC_RELEASE)
#define vnpu_store_relaxed(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)
#define vnpu_add(place, value)           __atomic_fetch_add((place), (value), __ATOMIC_SEQ_CST)
#define vnpu_add_relaxed(place, value)   __atomic_fetch_add((place), (value), __ATOMIC_RELAXED)
/* Puts `next` where `*expected` stands; on failure `*expected` becomes what stands there. Sequentially consistent. */
#define vnpu_swap(place, expected, next)                                                                               \
    __atomic_compare_exchange_n((place), (expected), (next), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#endif
