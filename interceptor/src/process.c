#include "process.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "atomics.h"
#include "fault.h"
#include "gate.h"
#include "helper.h"
#include "vnpu/names.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { EXIT_WITHOUT_LIMITER = 71 };

__thread unsigned int vnpu_depth;

static struct vnpu_process *process;

/* glibc's own pthread_atfork is linked into each library; this is what it calls. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);

void vnpu_say(const char *format, ...) {
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)length + 1);
    (void)ignored;
}

/* Kernels before 4.14 do not empty the pages themselves. */
static void empty_in_child(void) {
    if (vnpu_load(&process->phase) != VNPU_NEW)
        memset((void *)process, 0, sizeof *process);
    vnpu_depth = 0;
}

static struct vnpu_process *pages(void) {
    struct vnpu_process *found = vnpu_load(&process);

    if (found != NULL)
        return found;
    void *fresh = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    madvise(fresh, sizeof *found, MADV_WIPEONFORK);
    if (vnpu_swap(&process, &found, fresh)) {
        __register_atfork(NULL, NULL, empty_in_child, NULL);
        return fresh;
    }
    munmap(fresh, sizeof *found);
    return found;
}

/* ---- The wait */

/* NULL once attached to a region that a limiter keeps, else why not. */
static const char *try_to_attach(struct vnpu_process *self) {
    const char *wrong = vnpu_region_attach(self->path, &self->attached);

    if (wrong != NULL)
        return wrong;
    if (vnpu_limiter_lives(self->path, &self->attached)) {
        /* An application may close or reuse descriptors that it does not know. */
        vnpu_mapping_close(&self->attached.mapping);
        return NULL;
    }
    vnpu_unmap(&self->attached.mapping);
    return "its limiter does not live";
}

static const char *wait_for_limiter(struct vnpu_process *self) {
    uint64_t total_us = VNPU_MILLISECONDS("VNPU_TEST_WAIT_MS", VNPU_WAIT_TOTAL_MS) * 1000;
    uint64_t deadline = vnpu_now_us() + total_us;
    bool told = false;

    for (;;) {
        const char *wrong = try_to_attach(self);

        if (wrong == NULL)
            return NULL;
        if (vnpu_now_us() >= deadline)
            return wrong;
        if (!told)
            vnpu_say("vnpu: waiting for the limiter of this container, at most %llu s; region %s: %s",
                     (unsigned long long)total_us / 1000000, self->path, wrong);
        told = true;
        vnpu_sleep_us(VNPU_WAIT_POLL_MS * 1000);
    }
}

/* Never "no limit": the process ends, or each of its NPU calls fails. */
static enum vnpu_phase refuse(const char *what, const char *path, const char *why) {
    const char *policy = getenv(VNPU_ENV_ON_TIMEOUT);

    vnpu_say("vnpu: %s; region %s: %s", what, path, why);
    if (policy == NULL || strcmp(policy, VNPU_ON_TIMEOUT_DENY) != 0)
        _exit(EXIT_WITHOUT_LIMITER);
    return VNPU_DENIED;
}

static enum vnpu_phase join(struct vnpu_process *self) {
    if (!vnpu_region_path(self->path))
        return refuse("this process may not use the NPU", "unknown", "neither " VNPU_ENV_REGION " nor /proc tells it");
    const char *wrong = wait_for_limiter(self);
    if (wrong != NULL)
        return refuse("no limiter came, so this process may not use the NPU", self->path, wrong);
    self->ledger.region = self->attached.region;
    wrong = vnpu_gate_join(self);
    if (wrong == NULL)
        wrong = vnpu_helper_start(self);
    if (wrong != NULL)
        return refuse("this process may not use the NPU", self->path, wrong);
    return VNPU_READY;
}

static struct vnpu_process *enter_slowly(void) {
    struct vnpu_process *self = pages();
    uint32_t phase = VNPU_NEW;

    if (self == NULL)
        return NULL;
    int saved = errno;
    if (vnpu_swap(&self->phase, &phase, (uint32_t)VNPU_STARTING)) {
        phase = join(self);
        vnpu_store(&self->phase, phase);
        vnpu_futex_wake_all(&self->phase);
    }
    while ((phase = vnpu_load(&self->phase)) == VNPU_STARTING)
        vnpu_futex_wait(&self->phase, VNPU_STARTING, VNPU_WAIT_POLL_MS * 1000);
    errno = saved;
    return phase == VNPU_READY ? self : NULL;
}

struct vnpu_process *vnpu_enter(void) {
    struct vnpu_process *self = vnpu_load(&process);

    if (self != NULL && vnpu_load(&self->phase) == VNPU_READY)
        return self;
    return enter_slowly();
}
