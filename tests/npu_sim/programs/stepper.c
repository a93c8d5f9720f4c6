/*
 * npu-stepper OPERATION [STRIDE]: the books of the simulated NPU are right wherever a process stops or dies.
 *
 * A child does one operation, and is halted after its first, second, ... instruction. While it stands there others must
 * be served; once it is killed there, all that it held must be free. Ends with 0 and the number of places tried, with
 * 77 where processes cannot be traced, else with a line that says what was wrong after which instruction.
 */
#include "cann/codes.h"
#include "cann/hal.h"
#include "npu_sim/driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB      (1ull << 20)
#define CAPACITY (1024 * MIB)
#define FLAG     ((1ull << HAL_KIND_SHIFT) | (1ull << HAL_PHYSICAL_SHIFT) | ((uint64_t)MODULE_APP << HAL_MODULE_SHIFT))
#define NO_TRACE 77
#define WAIT_MS  10000

static struct npu_sim_queue *queue;
static void *held;

static void need(bool condition, const char *what, long at) {
    if (condition)
        return;
    printf("instruction %ld: %s\n", at, what);
    exit(1);
}

/* The operations, each in a process that has done the like before: addresses and pages are there. */
static void allocate(void) {
    halMemAlloc(&held, 3 * MIB, FLAG);
}

static void release(void) {
    halMemFree(held);
}

static void submit(void) {
    npu_sim_submit(queue, &(struct npu_sim_task){.kind = NPU_SIM_KERNEL, .a = 1000});
}

static void look(void) {
    npu_sim_done(npu_sim_queue_id(queue), npu_sim_last(queue));
}

static void open_queue(void) {
    struct npu_sim_queue *another;
    npu_sim_queue_open(0, &another);
}

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {
    {"allocate", allocate}, {"release", release}, {"submit", submit}, {"look", look}, {"open", open_queue},
};

static void prepare(void) {
    npu_sim_queue_open(0, &queue);
    allocate();
    release();
    submit();
    look();
    allocate();
    submit();
    submit();
}

static void child(void (*run)(void)) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
        _exit(NO_TRACE);
    prepare();
    raise(SIGSTOP);
    run();
    _exit(0);
}

/* True when the child stands after so many instructions of the operation; false when it ended before. */
static bool step(pid_t pid, long instructions) {
    int status;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TRACE)
        exit(NO_TRACE);
    for (long i = 0; i < instructions; i++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
            return false;
    }
    return true;
}

static void others_are_served(struct npu_sim_queue *own, long at) {
    void *ptr;
    need(halMemAlloc(&ptr, MIB, FLAG) == 0, "another process is denied", at);
    need(halMemFree(ptr) == 0, "another process cannot free", at);
    uint64_t last = npu_sim_submit(own, &(struct npu_sim_task){.kind = NPU_SIM_KERNEL, .a = 1000});
    need(npu_sim_wait(npu_sim_queue_id(own), last, WAIT_MS), "another process waits for ever", at);
}

static void all_is_free(long at) {
    void *ptr;
    need(halMemAlloc(&ptr, CAPACITY, FLAG) == 0, "memory of the dead is not free", at);
    void *more;
    need(halMemAlloc(&more, 1, FLAG) == DRV_OUT_OF_MEMORY, "there is more memory than there can be", at);
    halMemFree(ptr);
}

int main(int argc, char **argv) {
    void (*run)(void) = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof operations / sizeof *operations; i++)
        if (strcmp(argv[1], operations[i].name) == 0)
            run = operations[i].run;
    long stride = argc > 2 ? atol(argv[2]) : 1;
    struct npu_sim_queue *own;
    if (!run || stride < 1 || npu_sim_queue_open(0, &own))
        return 2;
    long tried = 0;
    for (bool inside = true; inside; tried++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            child(run);
        inside = step(pid, tried * stride);
        if (inside)
            others_are_served(own, tried * stride);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        all_is_free(tried * stride);
    }
    printf("%ld\n", tried);
    return 0;
}
