/* Reads quota vectors (kind TAB text TAB what it means) from standard input and prints what the parser says of each. */
#include "quota.h"

#include <stdio.h>
#include <string.h>

/* \n, \t and \\ stand for themselves in C. */
static void unescape(char *text) {
    char *to = text;

    for (; *text != '\0'; text++) {
        if (*text == '\\') {
            text++;
            *to++ = *text == 'n' ? '\n' : *text == 't' ? '\t' : *text;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static void show(const char *kind, const char *text) {
    struct vnpu_quota quota = {0};
    const char *wrong = "no such kind";

    if (strcmp(kind, "memory") == 0 && (wrong = vnpu_parse_memory(text, &quota)) == NULL)
        printf("%u\n", quota.memory_mib);
    else if (strcmp(kind, "priority") == 0 && (wrong = vnpu_parse_priority(text, &quota)) == NULL)
        printf("%u\n", quota.priority);
    else if (strcmp(kind, "ceiling") == 0 && (wrong = vnpu_parse_ceiling(text, &quota)) == NULL)
        printf("%d\n", quota.ceiling);
    else if (strcmp(kind, "file") == 0 && (wrong = vnpu_parse_quota_file(text, strlen(text), &quota)) == NULL)
        printf("%u %u %d\n", quota.memory_mib, quota.priority, quota.ceiling);
    else if (strcmp(kind, "cards") == 0 && (wrong = vnpu_parse_cards(text, &quota)) == NULL)
        for (uint32_t index = 0; index < quota.card_count; index++)
            printf("%u%c", quota.cards[index], index + 1 < quota.card_count ? ' ' : '\n');
    else
        printf("! %s\n", wrong);
}

int main(void) {
    char line[8192];

    while (fgets(line, sizeof line, stdin) != NULL) {
        char *text = strchr(line, '\t');
        char *meaning = text == NULL ? NULL : strchr(text + 1, '\t');

        if (line[0] == '#' || meaning == NULL)
            continue;
        *text++ = '\0';
        *meaning = '\0';
        unescape(text);
        show(line, text);
    }
    return 0;
}
