#include "helper.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "atomics.h"
#include "gate.h"
#include "process.h"

enum { LOOK_US = 1000000, GONE_LOOK_US = 50000, STACK_BYTES = 256 * 1024, UNDECIDED = -2 };

struct birth {
    struct vnpu_process *self;
    int32_t slot; /* or -1: none is free */
    uint32_t born;
};

/* Returns how soon to look again: launches wait for one that died, and go on when somebody sees the next. */
static uint64_t look_after_limiter(struct vnpu_process *self) {
    if (vnpu_limiter_lives(self->path, &self->attached)) {
        vnpu_store(&self->limiter_gone_us, 0);
        return LOOK_US;
    }
    if (vnpu_load_relaxed(&self->limiter_gone_us) == 0)
        vnpu_store(&self->limiter_gone_us, vnpu_now_us());
    return GONE_LOOK_US;
}

static void serve(struct vnpu_process *self) {
    uint64_t limiter_look = 0;

    for (;;) {
        uint32_t *bell = vnpu_gate_bell(self);
        uint32_t rung = vnpu_load(bell);
        uint64_t now = vnpu_now_us();

        if (now >= limiter_look)
            limiter_look = now + look_after_limiter(self);
        uint64_t next = vnpu_gate_tend(self, now);
        next = next < limiter_look ? next : limiter_look;
        now = vnpu_now_us();
        if (next > now)
            vnpu_futex_wait(bell, rung, next - now);
    }
}

static void *help(void *argument) {
    struct birth *birth = argument;
    struct vnpu_process *self = birth->self;
    int slot = vnpu_slot_claim(self->ledger.region, &self->vow);

    if (slot >= 0)
        self->ledger.slot = (uint32_t)slot;
    birth->slot = slot;
    vnpu_store(&birth->born, 1);
    vnpu_futex_wake_all(&birth->born);
    if (slot < 0)
        return NULL;
    prctl(PR_SET_NAME, "vnpu-helper");
    /* What the helper calls of CANN is part of no call of the application's. */
    vnpu_depth = 1;
    serve(self);
    return NULL;
}

/* Signals of the application are for its own threads. */
static int start_thread(struct birth *birth) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int result = pthread_create(&thread, &attributes, help, birth);
    if (result != 0) {
        /* Large thread-local data of other libraries lies on the stack too. */
        pthread_attr_destroy(&attributes);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        result = pthread_create(&thread, &attributes, help, birth);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

const char *vnpu_helper_start(struct vnpu_process *self) {
    struct birth birth = {.self = self, .slot = UNDECIDED};

    if (start_thread(&birth) != 0)
        return "it may start no further thread";
    while (vnpu_load(&birth.born) == 0)
        vnpu_futex_wait(&birth.born, 0, LOOK_US);
    if (birth.slot < 0)
        return "all its places for processes are taken";
    return NULL;
}
