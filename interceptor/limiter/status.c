#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "books.h"
#include "limiter.h"
#include "prim.h"
#include "slots.h"
#include "turns.h"
#include "vnpu/names.h"

#define MIB(pages) ((unsigned long long)(pages) * VNPU_PAGE / (1024 * 1024))

static uint64_t held_us(const struct vnpu_region *region, const struct vnpu_card *card) {
    char path[sizeof region->registry_dir + 64];
    struct vnpu_mapping mapping;
    uint32_t tenant = vnpu_load_relaxed(&card->tenant);

    snprintf(path, sizeof path, "%.255s/%u" VNPU_REGISTRY_SUFFIX, region->registry_dir, card->id);
    if (tenant >= VNPU_TENANTS || vnpu_registry_attach(path, card->id, &mapping) != NULL)
        return 0;
    struct vnpu_registry *registry = mapping.base;
    uint64_t held = vnpu_held_us(registry, tenant, vnpu_now_us());
    vnpu_unmap(&mapping);
    return held;
}

static void card_json(struct vnpu_region *region, uint32_t index) {
    const struct vnpu_card *card = &region->cards[index];
    struct vnpu_holdings holdings = vnpu_holdings(region, index);

    printf("%s{\"card\": %u, \"quota_mib\": %llu, \"used_bytes\": %llu, \"overhead_bytes\": %llu, \"priority\": ",
           index == 0 ? "" : ", ", card->id, MIB(card->quota_pages), (unsigned long long)holdings.held * VNPU_PAGE,
           (unsigned long long)holdings.overhead * VNPU_PAGE);
    if (card->priority == 0)
        printf("null");
    else
        printf("%u", card->priority);
    printf(", \"held_us\": %llu, \"denials\": %llu, \"waits\": %llu, \"wait_us\": %llu, \"longest_us\": %llu}",
           (unsigned long long)held_us(region, card), (unsigned long long)card->denials,
           (unsigned long long)card->waits, (unsigned long long)card->wait_us, (unsigned long long)card->longest_us);
}

static void card_text(struct vnpu_region *region, uint32_t index) {
    const struct vnpu_card *card = &region->cards[index];
    struct vnpu_holdings holdings = vnpu_holdings(region, index);

    printf("card %u: %llu / %llu MiB (%llu of the runtime itself), %llu refused; ", card->id,
           MIB(holdings.held + holdings.overhead), MIB(card->quota_pages), MIB(holdings.overhead),
           (unsigned long long)card->denials);
    if (card->priority == 0)
        printf("no priority");
    else
        printf("priority %u %%%s", card->priority, region->flags & VNPU_CEILING ? " at most" : "");
    printf(", held for %.1f s, longest wait %.3f s\n", (double)held_us(region, card) / 1e6,
           (double)card->longest_us / 1e6);
}

static uint64_t process_bytes(const struct vnpu_region *region, uint32_t slot) {
    uint64_t pages = 0;

    for (uint32_t card = 0; card < region->card_count; card++) {
        const struct vnpu_book *book = &region->books[card].slots[slot];

        pages += (vnpu_load_relaxed(&book->charge) >> VNPU_CHARGE_HELD_SHIFT) + vnpu_load_relaxed(&book->overhead);
    }
    return pages * VNPU_PAGE;
}

/* The name is what the process calls itself: quotes and control characters stay out of what we print. */
static const char *printable(const char name[16], char text[16]) {
    for (int index = 0; index < 16; index++)
        text[index] = name[index] == '\0' ||
                              (name[index] >= ' ' && name[index] <= '~' && name[index] != '"' && name[index] != '\\')
                          ? name[index]
                          : '?';
    text[15] = '\0';
    return text;
}

static unsigned int processes(struct vnpu_region *region, bool json) {
    unsigned int count = 0;
    uint32_t used = vnpu_load(&region->slots_used);

    for (uint32_t slot = 0; slot < used && slot < VNPU_SLOTS; slot++) {
        char name[16];

        if (!vnpu_owner_lives(vnpu_load(&region->slots[slot].owner)))
            continue;
        printable(region->slots[slot].name, name);
        if (json)
            printf("%s{\"pid\": %d, \"name\": \"%s\", \"bytes\": %llu}", count == 0 ? "" : ", ",
                   (int)region->slots[slot].pid, name, (unsigned long long)process_bytes(region, slot));
        else
            printf("process %d %s: %llu MiB\n", (int)region->slots[slot].pid, name,
                   (unsigned long long)process_bytes(region, slot) / (1024 * 1024));
        count++;
    }
    return count;
}

static void print_json(struct vnpu_region *region, bool lives) {
    printf("{\"limiter\": %s, \"generation\": %llu, \"ceiling\": %s, \"cards\": [", lives ? "true" : "false",
           (unsigned long long)vnpu_load(&region->generation), region->flags & VNPU_CEILING ? "true" : "false");
    for (uint32_t index = 0; index < region->card_count; index++)
        card_json(region, index);
    printf("], \"processes\": [");
    processes(region, true);
    printf("]}\n");
}

static void print_text(struct vnpu_region *region, bool lives) {
    printf("limiter %s, generation %llu\n", lives ? "alive" : "dead",
           (unsigned long long)vnpu_load(&region->generation));
    for (uint32_t index = 0; index < region->card_count; index++)
        card_text(region, index);
    processes(region, false);
}

enum exit_code status(const char *region_path, bool json) {
    struct vnpu_attached attached;
    const char *wrong = vnpu_region_attach(region_path, &attached);

    if (wrong != NULL) {
        fprintf(stderr, "limiter: no region at %s: %s\n", region_path, wrong);
        return EXIT_NO;
    }
    bool lives = vnpu_limiter_lives(region_path, &attached);
    (json ? print_json : print_text)(attached.region, lives);
    vnpu_unmap(&attached.mapping);
    return lives ? EXIT_DONE : EXIT_NO;
}
