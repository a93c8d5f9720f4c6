#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "atomics.h"
#include "limiter.h"
#include "slots.h"

enum { TICK_US = 1000000, TICKS_WITHOUT_GUARDIAN = 3 };

static volatile sig_atomic_t terminated;

static void on_terminate(int number) {
    (void)number;
    terminated = 1;
}

static void listen_to_signals(void) {
    struct sigaction action = {.sa_handler = on_terminate};

    /* No SA_RESTART: the sleep of a tick ends at once. */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static bool guardian_lives(const char *path) {
    off_t size;
    int descriptor = vnpu_open_regular(path, &size);
    bool lives = descriptor >= 0 && vnpu_lock_held(descriptor, VNPU_LOCK_GUARDIAN);

    if (descriptor >= 0)
        close(descriptor);
    return lives;
}

static bool asked_to_stop(struct vnpu_region *region) {
    return terminated || vnpu_load(&region->stop) != 0;
}

static enum ending keep(const struct settings *settings, struct vnpu_attached *attached,
                        struct tenancy tenancies[VNPU_CARDS], bool guarded) {
    struct mirror mirror = {.mapping = {.descriptor = -1}};
    struct vnpu_region *region = attached->region;
    int unguarded = 0;

    while (!asked_to_stop(region)) {
        if (!vnpu_same_file(settings->region_path, &attached->mapping)) {
            log_line("the region at %s was removed", settings->region_path);
            return SUPERSEDED;
        }
        unguarded = guarded && !guardian_lives(settings->region_path) ? unguarded + 1 : 0;
        if (unguarded == TICKS_WITHOUT_GUARDIAN)
            return GUARDIAN_LOST;
        vnpu_slots_sweep(region);
        keep_tenancies(region, tenancies);
        write_mirror(&mirror, region, tenancies);
        vnpu_futex_wait(&region->stop, 0, TICK_US);
    }
    unlink(settings->region_path);
    return STOPPED;
}

static void leave_cards(struct tenancy tenancies[VNPU_CARDS], bool for_good) {
    for (uint32_t index = 0; index < VNPU_CARDS; index++) {
        if (tenancies[index].tenant != NULL && for_good)
            vnpu_store(&tenancies[index].tenant->key, 0);
        if (tenancies[index].registry != NULL)
            vnpu_unmap(&tenancies[index].mapping);
    }
}

enum ending run_limiter(const struct settings *settings, bool guarded) {
    struct vnpu_attached attached;
    struct tenancy tenancies[VNPU_CARDS] = {0};
    enum ending ending = FAILED;

    listen_to_signals();
    enum keeping keeping = keep_region(settings, &attached);
    if (keeping != KEPT) {
        log_line(keeping == ANOTHER_KEEPS ? "another limiter keeps %s" : "the region %s cannot be made: %s",
                 settings->region_path, strerror(errno));
        return keeping == ANOTHER_KEEPS ? SUPERSEDED : FAILED;
    }
    /* Only now: the lock tells every waiting process that it may begin. */
    if (keep_tenancies(attached.region, tenancies) && vnpu_lock_wait(attached.mapping.descriptor, VNPU_LOCK_LIMITER)) {
        log_line("limiter %s keeps %s, generation %llu", VNPU_VERSION, settings->region_path,
                 (unsigned long long)attached.region->generation);
        ending = keep(settings, &attached, tenancies, guarded);
    } else if (attached.region->generation == 1) {
        unlink(settings->region_path);
    }
    leave_cards(tenancies, ending == STOPPED || ending == FAILED);
    vnpu_unmap(&attached.mapping);
    return ending;
}
