#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "limiter.h"

enum {
    READY_MS = 10000,
    STOP_MS = 5000,
    ANSWER_MS = 2000,
    LOOK_US = 5000,
    END_LOOK_US = 100000,
    RESTART_US = 100000,
    RESTART_LONGEST_US = 800000,
};

/* Whether the limiter goes on to its next round when it is woken. One that was just killed may hold its lock for a
 * moment, and never answers; one that is stopped holds it and does not answer, but lives. */
static bool answers(const char *path, struct vnpu_attached *attached) {
    uint64_t deadline = vnpu_now_us() + (uint64_t)ANSWER_MS * 1000;
    uint32_t round = vnpu_load(&attached->region->rounds);
    bool lives;

    while ((lives = vnpu_limiter_lives(path, attached)) && vnpu_load(&attached->region->rounds) == round &&
           vnpu_now_us() < deadline) {
        vnpu_futex_wake_all(&attached->region->stop);
        vnpu_sleep_us(LOOK_US);
    }
    return lives;
}

static bool limiter_lives(const char *path) {
    struct vnpu_attached attached;

    if (vnpu_region_attach(path, &attached) != NULL)
        return false;
    bool lives = answers(path, &attached);
    vnpu_unmap(&attached.mapping);
    return lives;
}

/* ---- The guardian */

static void let_go_of(struct vnpu_attached *attached) {
    if (attached->region != NULL)
        vnpu_unmap(&attached->mapping);
    attached->region = NULL;
}

static void guard(const struct settings *settings, int ready);

/* A process of its own, so that the kernel's word on the limiter is a lock that this one never held. One that finds
 * itself without a guardian gives its lock back and becomes the guardian of another. */
static pid_t spawn(const struct settings *settings, struct vnpu_attached *held, int ready) {
    pid_t guardian = getpid();
    pid_t child = fork();

    VNPU_FAULT(child != 0 ? "guardian-spawned" : "limiter-born");
    if (child != 0)
        return child;
    /* The guardian's lock is the guardian's alone. */
    let_go_of(held);
    if (ready >= 0)
        close(ready);
    prctl(PR_SET_NAME, "vnpu-limiter");
    enum ending ending = run_limiter(settings, guardian);
    if (ending == GUARDIAN_LOST)
        guard(settings, -1);
    _exit(ending == STOPPED ? EXIT_DONE : ending == SUPERSEDED ? EXIT_NO : EXIT_SYSTEM);
}

enum start { UP, NOT_UP, STOPPED_AT_ONCE, NOBODY_THERE };

/* Waits for the limiter of this region, be it ours or one that was faster. That one may have been dying: then nobody is
 * there, and another attempt is due. */
static enum start comes_up(const char *path, pid_t limiter, struct vnpu_attached *attached) {
    uint64_t deadline = vnpu_now_us() + (uint64_t)READY_MS * 1000;
    bool was_slower = false;
    int status = 0;

    while (vnpu_now_us() < deadline) {
        bool kept = false;

        if (vnpu_region_attach(path, attached) == NULL) {
            if (vnpu_limiter_lives(path, attached))
                return UP;
            kept = vnpu_lock_held(attached->mapping.descriptor, VNPU_LOCK_KEEPER);
            vnpu_unmap(&attached->mapping);
        }
        if (was_slower && !kept)
            return NOBODY_THERE;
        if (waitpid(limiter, &status, WNOHANG) == limiter) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE)
                return STOPPED_AT_ONCE;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_NO)
                return NOT_UP;
            was_slower = true;
        }
        vnpu_sleep_us(LOOK_US);
    }
    return NOT_UP;
}

/* Says once that limiter and guardian are at work. */
static void tell_ready(int *ready) {
    if (*ready < 0)
        return;
    ssize_t ignored = write(*ready, "r", 1);
    (void)ignored;
    close(*ready);
    *ready = -1;
}

/* Returns when the limiter of this region ended, be it the child or one that another guardian started. Its lock is
 * never taken for that: a guardian that is stopped just then would look like a limiter. */
static void wait_for_end(int descriptor, pid_t child) {
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    while (vnpu_lock_held(descriptor, VNPU_LOCK_LIMITER))
        vnpu_sleep_us(END_LOOK_US);
}

/* Returns when the limiter ended; true when there is nothing left to guard. The guardian's lock stays, so that whoever
 * stops a container in the middle of a restart finds somebody to ask. */
static bool watch(struct vnpu_attached *attached, pid_t child, int *ready) {
    int descriptor = attached->mapping.descriptor;

    if (!vnpu_lock_try(descriptor, VNPU_LOCK_GUARDIAN))
        return true;
    VNPU_FAULT("guardian-locked");
    vnpu_store(&attached->region->guardian_pid, (int32_t)getpid());
    tell_ready(ready);
    wait_for_end(descriptor, child);
    VNPU_FAULT("guardian-alone");
    return vnpu_load(&attached->region->stop) != 0;
}

static bool keeps(const char *path, pid_t limiter) {
    struct vnpu_attached attached;

    if (vnpu_region_attach(path, &attached) != NULL)
        return false;
    bool keeper = vnpu_load(&attached.region->limiter_pid) == limiter;
    vnpu_unmap(&attached.mapping);
    return keeper;
}

/* Before a guardian goes, its limiter has ended, or is the one that another guards: none may come up afterwards, when
 * the region may have been stopped. The first process of a container may be one that never reaps. */
static void part_from(const char *path, pid_t limiter) {
    while (waitpid(limiter, NULL, WNOHANG) == 0 && !keeps(path, limiter))
        vnpu_sleep_us(LOOK_US);
}

/* One limiter's life; false when there is nothing left to guard. `held` is the region that the guardian's lock is on.
 */
static bool guard_once(const struct settings *settings, struct vnpu_attached *held, int *ready) {
    struct vnpu_attached attached = {.region = NULL};
    pid_t limiter = spawn(settings, held, *ready);
    enum start start = limiter > 0 ? comes_up(settings->region_path, limiter, &attached) : NOT_UP;

    if (start == UP) {
        let_go_of(held);
        *held = attached;
    }
    if (start == UP ? !watch(held, limiter, ready) : start == NOBODY_THERE || (start == NOT_UP && *ready < 0))
        return held->region == NULL || vnpu_load(&held->region->stop) == 0;
    part_from(settings->region_path, limiter);
    return false;
}

/* Returns when the limiter was asked to stop, another guardian is at work, or the very first start failed. */
static void guard(const struct settings *settings, int ready) {
    struct vnpu_attached held = {.region = NULL};
    uint64_t begun = vnpu_now_us();
    uint64_t pause_us = RESTART_US;

    prctl(PR_SET_NAME, "vnpu-guardian");
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    while (guard_once(settings, &held, &ready)) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        /* One that cannot start must not burn the processor; one that was killed comes back at once. */
        pause_us = vnpu_now_us() - begun > RESTART_LONGEST_US ? RESTART_US : pause_us * 2;
        if (pause_us > RESTART_LONGEST_US)
            pause_us = RESTART_LONGEST_US;
        vnpu_sleep_us(pause_us);
        if (held.region != NULL && vnpu_load(&held.region->stop) != 0)
            break;
        begun = vnpu_now_us();
    }
    let_go_of(&held);
    if (ready >= 0)
        close(ready);
}

/* ---- Starting it */

/* Whoever ran `start` with pipes must see their ends: nothing of ours may keep them open. */
static void let_go(int keep) {
    struct rlimit limit = {0};
    int null = open("/dev/null", O_RDWR);

    getrlimit(RLIMIT_NOFILE, &limit);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (null < 0 || dup2(null, descriptor) < 0)
            close(descriptor);
    for (int descriptor = 3; descriptor < (int)limit.rlim_cur && descriptor < 65536; descriptor++)
        if (descriptor != keep)
            close(descriptor);
}

static void detach(const struct settings *settings, int ready) {
    setsid();
    let_go(ready);
    if (chdir("/") != 0)
        _exit(EXIT_SYSTEM);
    if (fork() == 0)
        guard(settings, ready);
    _exit(EXIT_DONE);
}

static bool wait_for_byte(int descriptor) {
    char byte;
    ssize_t length;

    /* End of file: everybody who could have said "ready" is gone. */
    do
        length = read(descriptor, &byte, 1);
    while (length < 0 && errno == EINTR);
    return length == 1;
}

enum exit_code start(const struct settings *settings) {
    int ready[2];

    if (limiter_lives(settings->region_path))
        return EXIT_DONE;
    remove_abandoned_regions();
    if (pipe2(ready, O_CLOEXEC) != 0) {
        fprintf(stderr, "limiter: no pipe: %s\n", strerror(errno));
        return EXIT_SYSTEM;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        detach(settings, ready[1]);
    }
    close(ready[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    /* Two that start at once: the one that was too late finds the other's at work. */
    bool up = child > 0 && (wait_for_byte(ready[0]) || limiter_lives(settings->region_path));
    close(ready[0]);
    if (up)
        return EXIT_DONE;
    fprintf(stderr, "limiter: it did not start; the log says why\n");
    return EXIT_SYSTEM;
}

/* Asks whoever keeps the region to end; false when nobody does. */
static bool ask_to_stop(const char *path) {
    struct vnpu_attached attached;

    if (vnpu_region_attach(path, &attached) != NULL)
        return false;
    int descriptor = attached.mapping.descriptor;
    bool kept = vnpu_lock_held(descriptor, VNPU_LOCK_KEEPER) || vnpu_lock_held(descriptor, VNPU_LOCK_GUARDIAN);
    vnpu_store(&attached.region->stop, 1);
    vnpu_futex_wake_all(&attached.region->stop);
    if (!kept)
        unlink(path);
    vnpu_unmap(&attached.mapping);
    return kept;
}

/* Asked again and again: a limiter that is just coming up in place of a killed one takes the region as new. */
enum exit_code stop(const char *region_path) {
    uint64_t deadline = vnpu_now_us() + (uint64_t)STOP_MS * 1000;

    while (ask_to_stop(region_path)) {
        if (vnpu_now_us() >= deadline) {
            fprintf(stderr, "limiter: it did not stop within %d s\n", STOP_MS / 1000);
            return EXIT_SYSTEM;
        }
        vnpu_sleep_us(LOOK_US);
    }
    return EXIT_DONE;
}
