/* What this process got of the cards, by pointer or handle, so that a free subtracts what its allocation added. */
#ifndef VNPU_TRACK_H
#define VNPU_TRACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum vnpu_kind { VNPU_POINTER, VNPU_HANDLE, VNPU_MAPPING, VNPU_SHAREABLE };

struct vnpu_record {
    uint64_t key; /* pointer or handle */
    uint64_t pages;
    uint64_t owner; /* of a mapping, a shareable and an imported handle: the handle whose memory it is */
    uint32_t refs;  /* of a handle: creation, mappings, times it was asked back, imports */
    uint8_t card;   /* index of the region */
    uint8_t kind;
    uint8_t overhead;
    uint8_t used;
};

enum { VNPU_SHARDS = 16 };

/* All zero is an empty tracker. */
struct vnpu_tracker {
    struct vnpu_shard {
        pthread_mutex_t lock;
        struct vnpu_record *records;
        uint64_t room; /* a power of two, or 0 */
        uint64_t count;
    } shards[VNPU_SHARDS];
};

/* False when there is no memory left for the record. */
bool vnpu_track(struct vnpu_tracker *tracker, const struct vnpu_record *record);
/* Takes the record out; false when there is none: not ours to count. */
bool vnpu_untrack(struct vnpu_tracker *tracker, enum vnpu_kind kind, uint64_t key, struct vnpu_record *record);
/* Finds a record and leaves it. */
bool vnpu_tracked(struct vnpu_tracker *tracker, enum vnpu_kind kind, uint64_t key, struct vnpu_record *record);
/* Another reference to a handle; its card, or -1 when it is not tracked. */
int vnpu_track_again(struct vnpu_tracker *tracker, uint64_t handle);
/* One reference less; true with the record when it was the last. */
bool vnpu_untrack_once(struct vnpu_tracker *tracker, uint64_t handle, struct vnpu_record *record);
/* Takes out any record of a card; false when there is none left. */
bool vnpu_untrack_any(struct vnpu_tracker *tracker, uint8_t card, struct vnpu_record *record);

#endif
