/* Keeps a card busy: load KERNEL_US [sync] [think MICROSECONDS] [cards N].
 *
 * Says "ready" when it is set up, begins at the first line on standard input, and ends at its end; then it tells how
 * many launches there were, and the longest that one took, in microseconds. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <time.h>
#include <unistd.h>

extern int aclrtSetDevice(int32_t device);
extern int aclrtCreateStream(void **stream);
extern int aclrtSynchronizeStream(void *stream);
extern int rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *memory, void *stream);

/* What the simulated card reads at the head of a kernel's arguments. */
struct kernel {
    uint64_t magic, ns, group, members;
};

enum { MOST_CARDS = 4 };

static uint64_t now_us(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool over(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, 1, 0) > 0;
}

static void must(int result, const char *what) {
    if (result == 0)
        return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(1);
}

int main(int count, char **arguments) {
    struct kernel kernel = {.magic = 0x4c454e52454b494eull, .ns = strtoull(arguments[1], NULL, 10) * 1000};
    void *streams[MOST_CARDS];
    bool synchronise = false;
    useconds_t think = 0;
    int cards = 1;
    char line[16];

    for (int index = 2; index < count; index++) {
        synchronise |= strcmp(arguments[index], "sync") == 0;
        if (strcmp(arguments[index], "think") == 0)
            think = (useconds_t)atoi(arguments[index + 1]);
        if (strcmp(arguments[index], "cards") == 0)
            cards = atoi(arguments[index + 1]);
    }
    for (int card = 0; card < cards; card++) {
        must(aclrtSetDevice(card), "aclrtSetDevice");
        must(aclrtCreateStream(&streams[card]), "aclrtCreateStream");
    }
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    uint64_t launches = 0;
    uint64_t longest = 0;
    while (!over()) {
        uint64_t before = now_us();

        if (cards > 1) {
            kernel.group = (uint64_t)getpid() << 32 | (launches + 1);
            kernel.members = (uint64_t)cards;
        }
        for (int card = 0; card < cards; card++) {
            if (cards > 1)
                must(aclrtSetDevice(card), "aclrtSetDevice");
            must(rtKernelLaunch(NULL, 1, &kernel, sizeof kernel, NULL, streams[card]), "rtKernelLaunch");
        }
        uint64_t took = now_us() - before;
        longest = took > longest ? took : longest;
        launches++;
        if (synchronise)
            must(aclrtSynchronizeStream(streams[0]), "aclrtSynchronizeStream");
        if (think > 0)
            usleep(think);
    }
    printf("%llu %llu\n", (unsigned long long)launches, (unsigned long long)longest);
    return 0;
}
