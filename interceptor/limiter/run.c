#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "limiter.h"
#include "slots.h"

enum { TICK_MS = 1000, TICKS_WITHOUT_GUARDIAN = 3 };

static volatile sig_atomic_t terminated;
static volatile sig_atomic_t orphaned;

static void on_signal(int number) {
    if (number == SIGUSR1)
        orphaned = 1;
    else
        terminated = 1;
}

static void listen_to_signals(pid_t guardian) {
    struct sigaction action = {.sa_handler = on_signal};

    /* No SA_RESTART: the sleep of a tick ends at once. */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    /* What is set may be the word of a parent that was an orphan itself. */
    orphaned = 0;
    if (guardian == 0)
        return;
    /* Told at once, so that there is hardly a moment in which one more death leaves nobody. */
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != guardian)
        orphaned = 1;
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
        vnpu_add(&region->rounds, 1);
        /* One that guards another's limiter is not its parent, and its death is noticed by looking alone. */
        unguarded = guarded && !guardian_lives(settings->region_path) ? unguarded + 1 : 0;
        if (unguarded == TICKS_WITHOUT_GUARDIAN || (unguarded > 0 && orphaned))
            return GUARDIAN_LOST;
        vnpu_slots_sweep(region);
        keep_tenancies(region, tenancies);
        write_mirror(&mirror, region, tenancies);
        VNPU_FAULT("limiter-round");
        vnpu_futex_wait(&region->stop, 0, VNPU_MILLISECONDS("VNPU_TEST_TICK_MS", TICK_MS) * 1000);
    }
    unlink(settings->region_path);
    VNPU_FAULT("limiter-stopping");
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

enum ending run_limiter(const struct settings *settings, pid_t guardian) {
    struct vnpu_attached attached;
    struct tenancy tenancies[VNPU_CARDS] = {0};
    enum ending ending = FAILED;

    listen_to_signals(guardian);
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
        VNPU_FAULT("limiter-ready");
        ending = keep(settings, &attached, tenancies, guardian != 0);
    } else if (attached.region->generation == 1) {
        unlink(settings->region_path);
    }
    leave_cards(tenancies, ending == STOPPED || ending == FAILED);
    vnpu_unmap(&attached.mapping);
    return ending;
}
