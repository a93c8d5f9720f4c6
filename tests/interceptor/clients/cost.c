/* What a call costs: cost launch | queue | memory [BLOCKS]. Prints nanoseconds for each call (or pair of allocation and
 * free), the median of many blocks of CALLS each, so that what else the machine does falls out.
 *
 * "launch" is handing in alone; most of its blocks are without a mark of the interceptor. "queue" waits for the end of
 * each block, marks included: whoever looks at the simulated card, as a mark does, first computes what it did. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int aclrtSetDevice(int32_t device);
extern int aclrtCreateStream(void **stream);
extern int aclrtSynchronizeStream(void *stream);
extern int rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *memory, void *stream);
extern int halMemAlloc(void **out, unsigned long long size, unsigned long long flag);
extern int halMemFree(void *pointer);

struct kernel {
    uint64_t magic, ns, group, members;
};

enum { MOST_BLOCKS = 1001, CALLS = 50 };

static const unsigned long long memory_flag = 33ull << 56 | 1ull << 14 | 1ull << 10;

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;

    return (difference > 0) - (difference < 0);
}

static void must(int result) {
    if (result != 0)
        exit(1);
}

static double launch_block(void *stream, bool to_the_end) {
    struct kernel kernel = {.magic = 0x4c454e52454b494eull};
    uint64_t begun = now_ns();

    for (int call = 0; call < CALLS; call++)
        must(rtKernelLaunch(NULL, 1, &kernel, sizeof kernel, NULL, stream));
    uint64_t handed_in = now_ns();
    must(aclrtSynchronizeStream(stream));
    return (double)((to_the_end ? now_ns() : handed_in) - begun) / CALLS;
}

static double memory_block(void) {
    uint64_t begun = now_ns();
    void *pointer;

    for (int call = 0; call < CALLS; call++) {
        must(halMemAlloc(&pointer, 4096, memory_flag));
        must(halMemFree(pointer));
    }
    return (double)(now_ns() - begun) / CALLS;
}

int main(int count, char **arguments) {
    static double blocks[MOST_BLOCKS];
    int wanted = count == 3 ? atoi(arguments[2]) : MOST_BLOCKS;
    void *stream;

    if (count < 2 || wanted < 1 || wanted > MOST_BLOCKS)
        return 2;
    bool memory = strcmp(arguments[1], "memory") == 0;
    must(aclrtSetDevice(0));
    must(aclrtCreateStream(&stream));
    for (int block = 0; block < wanted; block++)
        blocks[block] = memory ? memory_block() : launch_block(stream, strcmp(arguments[1], "queue") == 0);
    qsort(blocks, (size_t)wanted, sizeof *blocks, compare);
    printf("%.1f\n", blocks[wanted / 2]);
    return 0;
}
