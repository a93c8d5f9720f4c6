/*
 * npu-torture SECONDS WORKERS SEED: processes allocate, free and launch on card 0 while others kill, stop and continue
 * them. One process is left alone; the longest that it had to wait for anything is printed at the end, in ms.
 */
#include "cann/codes.h"
#include "cann/hal.h"
#include "npu_sim/driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLAG    ((1ull << HAL_KIND_SHIFT) | (1ull << HAL_PHYSICAL_SHIFT) | ((uint64_t)MODULE_APP << HAL_MODULE_SHIFT))
#define BLOCKS  16
#define WORKERS 256

static uint64_t now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pause_us(unsigned us) {
    nanosleep(&(struct timespec){0, (long)us * 1000}, NULL);
}

static void toggle(void **block, unsigned *seed) {
    if (*block) {
        halMemFree(*block);
        *block = NULL;
    } else if (halMemAlloc(block, 1 + rand_r(seed) % (8u << 20), FLAG)) {
        *block = NULL;
    }
}

static void work(unsigned seed, const char *tag) {
    void *blocks[BLOCKS] = {0};
    struct npu_sim_queue *queue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NPU_SIM_TAG", tag, 1);
    if (npu_sim_queue_open(0, &queue))
        _exit(1);
    for (;;) {
        toggle(&blocks[rand_r(&seed) % BLOCKS], &seed);
        struct npu_sim_task kernel = {.kind = NPU_SIM_KERNEL, .a = rand_r(&seed) % 50000};
        if (rand_r(&seed) % 8 == 0)
            npu_sim_submit(queue, &kernel);
        if (rand_r(&seed) % 64 == 0)
            npu_sim_wait(npu_sim_queue_id(queue), npu_sim_last(queue), 100);
    }
}

/* What nobody disturbs: the longest round is what a healthy process had to wait. */
static void watch(_Atomic uint64_t *longest) {
    struct npu_sim_queue *queue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NPU_SIM_TAG", "watch", 1);
    if (npu_sim_queue_open(0, &queue))
        _exit(1);
    for (;;) {
        uint64_t start = now();
        void *ptr = NULL;
        if (halMemAlloc(&ptr, 4096, FLAG) == 0)
            halMemFree(ptr);
        npu_sim_done(npu_sim_queue_id(queue), npu_sim_last(queue));
        uint64_t took = now() - start;
        if (took > *longest)
            *longest = took;
        pause_us(200);
    }
}

struct worker {
    pid_t pid;
    bool stopped;
};

static void start(struct worker *worker, int index, unsigned seed) {
    static const char *const tags[] = {"a", "b", "c", "d"};
    *worker = (struct worker){.pid = fork()};
    if (worker->pid == 0)
        work(seed, tags[index % 4]);
}

static void disturb(struct worker *worker, int index, unsigned *seed) {
    if (worker->stopped || rand_r(seed) % 3 == 0) {
        kill(worker->pid, worker->stopped ? SIGCONT : SIGSTOP);
        worker->stopped = !worker->stopped;
        return;
    }
    kill(worker->pid, SIGKILL);
    waitpid(worker->pid, NULL, 0);
    start(worker, index, (unsigned)rand_r(seed));
}

int main(int argc, char **argv) {
    if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > WORKERS)
        return 2;
    uint64_t end = now() + (uint64_t)(atof(argv[1]) * 1e9);
    int count = atoi(argv[2]);
    unsigned seed = (unsigned)atoi(argv[3]);
    struct worker workers[WORKERS];
    _Atomic uint64_t *longest = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t watcher = fork();
    if (watcher == 0)
        watch(longest);
    for (int i = 0; i < count; i++)
        start(&workers[i], i, (unsigned)rand_r(&seed));
    while (now() < end) {
        int index = rand_r(&seed) % count;
        disturb(&workers[index], index, &seed);
        pause_us(500 + rand_r(&seed) % 2000);
    }
    for (int i = 0; i < count; i++) {
        kill(workers[i].pid, SIGKILL);
        waitpid(workers[i].pid, NULL, 0);
    }
    bool alive = kill(watcher, SIGKILL) == 0 && waitpid(watcher, NULL, 0) == watcher;
    printf("%.1f\n", (double)*longest / 1e6);
    return alive ? 0 : 1;
}
