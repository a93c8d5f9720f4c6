#include "track.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static uint64_t mix(enum vnpu_kind kind, uint64_t key) {
    uint64_t hash = (key + kind) * 0x9e3779b97f4a7c15;

    return hash ^ hash >> 29;
}

static struct vnpu_shard *shard_of(struct vnpu_tracker *tracker, enum vnpu_kind kind, uint64_t key) {
    return &tracker->shards[mix(kind, key) >> 32 & (VNPU_SHARDS - 1)];
}

/* Linear probing: the record's place, or the free one where it would stand. */
static struct vnpu_record *probe(const struct vnpu_shard *shard, enum vnpu_kind kind, uint64_t key) {
    uint64_t index = mix(kind, key) & (shard->room - 1);

    while (shard->records[index].used && (shard->records[index].key != key || shard->records[index].kind != kind))
        index = (index + 1) & (shard->room - 1);
    return &shard->records[index];
}

static bool grow(struct vnpu_shard *shard) {
    struct vnpu_shard larger = {.room = shard->room == 0 ? FIRST_ROOM : shard->room * 2};

    larger.records = calloc(larger.room, sizeof *larger.records);
    if (larger.records == NULL)
        return false;
    for (uint64_t index = 0; index < shard->room; index++)
        if (shard->records[index].used)
            *probe(&larger, shard->records[index].kind, shard->records[index].key) = shard->records[index];
    free(shard->records);
    shard->records = larger.records;
    shard->room = larger.room;
    return true;
}

static struct vnpu_record *find(struct vnpu_shard *shard, enum vnpu_kind kind, uint64_t key) {
    struct vnpu_record *record = shard->room == 0 ? NULL : probe(shard, kind, key);

    return record != NULL && record->used ? record : NULL;
}

/* Records that probed past the gap move up, so that a search never ends too early. */
static void take_out(struct vnpu_shard *shard, struct vnpu_record *record) {
    uint64_t mask = shard->room - 1;
    uint64_t gap = (uint64_t)(record - shard->records);

    for (uint64_t index = (gap + 1) & mask; shard->records[index].used; index = (index + 1) & mask) {
        uint64_t home = mix(shard->records[index].kind, shard->records[index].key) & mask;

        if (((index - home) & mask) >= ((index - gap) & mask)) {
            shard->records[gap] = shard->records[index];
            gap = index;
        }
    }
    shard->records[gap].used = 0;
    shard->count--;
}

bool vnpu_track(struct vnpu_tracker *tracker, const struct vnpu_record *record) {
    struct vnpu_shard *shard = shard_of(tracker, record->kind, record->key);

    pthread_mutex_lock(&shard->lock);
    bool room = (shard->count + 1) * 4 <= shard->room * 3 || grow(shard);
    if (room) {
        struct vnpu_record *place = probe(shard, record->kind, record->key);

        shard->count += !place->used;
        *place = *record;
        place->used = 1;
    }
    pthread_mutex_unlock(&shard->lock);
    return room;
}

bool vnpu_untrack(struct vnpu_tracker *tracker, enum vnpu_kind kind, uint64_t key, struct vnpu_record *record) {
    struct vnpu_shard *shard = shard_of(tracker, kind, key);

    pthread_mutex_lock(&shard->lock);
    struct vnpu_record *found = find(shard, kind, key);
    if (found != NULL) {
        *record = *found;
        take_out(shard, found);
    }
    pthread_mutex_unlock(&shard->lock);
    return found != NULL;
}

bool vnpu_tracked(struct vnpu_tracker *tracker, enum vnpu_kind kind, uint64_t key, struct vnpu_record *record) {
    struct vnpu_shard *shard = shard_of(tracker, kind, key);

    pthread_mutex_lock(&shard->lock);
    struct vnpu_record *found = find(shard, kind, key);
    if (found != NULL)
        *record = *found;
    pthread_mutex_unlock(&shard->lock);
    return found != NULL;
}

int vnpu_track_again(struct vnpu_tracker *tracker, uint64_t handle) {
    struct vnpu_shard *shard = shard_of(tracker, VNPU_HANDLE, handle);
    int card = -1;

    pthread_mutex_lock(&shard->lock);
    struct vnpu_record *found = find(shard, VNPU_HANDLE, handle);
    if (found != NULL) {
        found->refs++;
        card = found->card;
    }
    pthread_mutex_unlock(&shard->lock);
    return card;
}

bool vnpu_untrack_once(struct vnpu_tracker *tracker, uint64_t handle, struct vnpu_record *record) {
    struct vnpu_shard *shard = shard_of(tracker, VNPU_HANDLE, handle);
    bool last = false;

    pthread_mutex_lock(&shard->lock);
    struct vnpu_record *found = find(shard, VNPU_HANDLE, handle);
    if (found != NULL && --found->refs == 0) {
        *record = *found;
        take_out(shard, found);
        last = true;
    }
    pthread_mutex_unlock(&shard->lock);
    return last;
}

bool vnpu_untrack_any(struct vnpu_tracker *tracker, uint8_t card, struct vnpu_record *record) {
    for (struct vnpu_shard *shard = tracker->shards; shard < tracker->shards + VNPU_SHARDS; shard++) {
        pthread_mutex_lock(&shard->lock);
        for (uint64_t index = 0; index < shard->room; index++) {
            if (!shard->records[index].used || shard->records[index].card != card)
                continue;
            *record = shard->records[index];
            take_out(shard, &shard->records[index]);
            pthread_mutex_unlock(&shard->lock);
            return true;
        }
        pthread_mutex_unlock(&shard->lock);
    }
    return false;
}
