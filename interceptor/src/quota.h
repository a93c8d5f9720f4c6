/* The one parser of quotas and priorities. interceptor/quota.py is its twin; both are held to
 * tests/interceptor/quota_vectors.tsv.
 *
 *     memory    = number, 1 to 2147483647                       MiB of each card
 *     priority  = number, 1 to 100                              percent of each card
 *     ceiling   = "0" | "1"
 *     cards     = span *( "," span ), 1 to 16 cards, none twice
 *     span      = id [ "-" id ], upwards; id = "0" | number, at most 1023
 *     number    = 1*10 digit without a leading zero: no sign, no blank, no unit
 *     file      = a JSON object of at most 4096 bytes: {"memory_mib": memory, "priority": priority,
 *                 "fixed_share_ratio": true | false}; the last two may be left out, nothing else or twice
 *
 * What does not match is refused; nothing ever means "no limit". */
#ifndef VNPU_QUOTA_H
#define VNPU_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnpu/region.h"

enum { VNPU_QUOTA_FILE_LIMIT = 4096, VNPU_CARD_ID_LIMIT = 1023 };

struct vnpu_quota {
    uint32_t memory_mib;
    uint32_t priority; /* 0: none */
    bool ceiling;
    uint32_t card_count;
    uint32_t cards[VNPU_CARDS];
};

/* Each returns NULL, or the words "... is allowed" that explain what it wants; then nothing was written. */
const char *vnpu_parse_memory(const char *text, struct vnpu_quota *quota);
const char *vnpu_parse_priority(const char *text, struct vnpu_quota *quota);
const char *vnpu_parse_ceiling(const char *text, struct vnpu_quota *quota);
const char *vnpu_parse_cards(const char *text, struct vnpu_quota *quota);
const char *vnpu_parse_quota_file(const char *text, size_t length, struct vnpu_quota *quota);

#endif
