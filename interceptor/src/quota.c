#include "quota.h"

#include <string.h>

#define MEMORY_ALLOWED   "a whole number of MiB from 1 to 2147483647 is allowed"
#define PRIORITY_ALLOWED "a whole number of percent from 1 to 100 is allowed"
#define CEILING_ALLOWED  "0 or 1 is allowed"
#define CARDS_ALLOWED    "1 to 16 card numbers from 0 to 1023 such as 0,1 or 0-3, none twice, are allowed"
#define FILE_ALLOWED                                                                                                   \
    "an object of memory_mib and, where wanted, priority and fixed_share_ratio is allowed, such as {\"memory_mib\": "  \
    "8192}"

/* Reads a number at `*text`, moving it on; at most `high`, and at least 1 unless `zero` is allowed. */
static bool number(const char **text, const char *end, bool zero, uint32_t high, uint32_t *value) {
    const char *at = *text;
    uint64_t sum = 0;

    while (at < end && at - *text < 10 && *at >= '0' && *at <= '9')
        sum = sum * 10 + (uint64_t)(*at++ - '0');
    if (at == *text || sum > high || (at < end && *at >= '0' && *at <= '9'))
        return false;
    if (**text == '0' && (at - *text > 1 || !zero))
        return false;
    *text = at;
    *value = (uint32_t)sum;
    return true;
}

static bool whole(const char *text, uint32_t high, uint32_t *value) {
    const char *end = text + strlen(text);

    return number(&text, end, false, high, value) && text == end;
}

const char *vnpu_parse_memory(const char *text, struct vnpu_quota *quota) {
    return whole(text, INT32_MAX, &quota->memory_mib) ? NULL : MEMORY_ALLOWED;
}

const char *vnpu_parse_priority(const char *text, struct vnpu_quota *quota) {
    return whole(text, 100, &quota->priority) ? NULL : PRIORITY_ALLOWED;
}

const char *vnpu_parse_ceiling(const char *text, struct vnpu_quota *quota) {
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return CEILING_ALLOWED;
    quota->ceiling = *text == '1';
    return NULL;
}

static bool add_card(struct vnpu_quota *quota, uint32_t id) {
    if (quota->card_count == VNPU_CARDS)
        return false;
    for (uint32_t index = 0; index < quota->card_count; index++)
        if (quota->cards[index] == id)
            return false;
    quota->cards[quota->card_count++] = id;
    return true;
}

static bool span(const char **text, const char *end, struct vnpu_quota *quota) {
    uint32_t first;
    uint32_t last;

    if (!number(text, end, true, VNPU_CARD_ID_LIMIT, &first))
        return false;
    last = first;
    if (*text < end && **text == '-') {
        ++*text;
        if (!number(text, end, true, VNPU_CARD_ID_LIMIT, &last) || last < first)
            return false;
    }
    for (uint32_t id = first; id <= last; id++)
        if (!add_card(quota, id))
            return false;
    return true;
}

const char *vnpu_parse_cards(const char *text, struct vnpu_quota *quota) {
    struct vnpu_quota found = *quota;
    const char *end = text + strlen(text);

    found.card_count = 0;
    while (span(&text, end, &found)) {
        if (text == end) {
            *quota = found;
            return NULL;
        }
        if (*text++ != ',')
            break;
    }
    return CARDS_ALLOWED;
}

/* ---- The file */

struct reader {
    const char *at;
    const char *end;
};

static void skip_blanks(struct reader *reader) {
    while (reader->at < reader->end && memchr(" \t\r\n", *reader->at, 4) != NULL)
        reader->at++;
}

static bool take(struct reader *reader, const char *word) {
    size_t length = strlen(word);

    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

enum { SEEN_MEMORY = 1, SEEN_PRIORITY = 2, SEEN_CEILING = 4 };

/* The member's bit, 0 when it is none of ours or comes twice. */
static unsigned int key(struct reader *reader, unsigned int seen) {
    static const struct {
        const char *text;
        unsigned int bit;
    } keys[] = {
        {"\"memory_mib\"", SEEN_MEMORY}, {"\"priority\"", SEEN_PRIORITY}, {"\"fixed_share_ratio\"", SEEN_CEILING}};

    for (size_t index = 0; index < sizeof keys / sizeof *keys; index++)
        if (take(reader, keys[index].text))
            return keys[index].bit & ~seen;
    return 0;
}

static const char *member(struct reader *reader, unsigned int *seen, struct vnpu_quota *quota) {
    unsigned int bit = key(reader, *seen);

    *seen |= bit;
    skip_blanks(reader);
    if (bit == 0 || !take(reader, ":"))
        return FILE_ALLOWED;
    skip_blanks(reader);
    if (bit == SEEN_MEMORY)
        return number(&reader->at, reader->end, false, INT32_MAX, &quota->memory_mib) ? NULL : MEMORY_ALLOWED;
    if (bit == SEEN_PRIORITY)
        return number(&reader->at, reader->end, false, 100, &quota->priority) ? NULL : PRIORITY_ALLOWED;
    quota->ceiling = take(reader, "true");
    return quota->ceiling || take(reader, "false") ? NULL : FILE_ALLOWED;
}

const char *vnpu_parse_quota_file(const char *text, size_t length, struct vnpu_quota *quota) {
    struct reader reader = {text, text + length};
    struct vnpu_quota found = *quota;
    unsigned int seen = 0;

    found.priority = 0;
    found.ceiling = false;
    skip_blanks(&reader);
    if (length > VNPU_QUOTA_FILE_LIMIT || !take(&reader, "{"))
        return FILE_ALLOWED;
    do {
        skip_blanks(&reader);
        const char *wrong = member(&reader, &seen, &found);
        if (wrong != NULL)
            return wrong;
        skip_blanks(&reader);
    } while (take(&reader, ","));
    if (!take(&reader, "}"))
        return FILE_ALLOWED;
    skip_blanks(&reader);
    if (reader.at != reader.end || (seen & SEEN_MEMORY) == 0)
        return FILE_ALLOWED;
    *quota = found;
    return NULL;
}
