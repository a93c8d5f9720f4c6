/* A client of CANN that does what it is told, one command a line, and answers each with one line.
 *
 * - call NAME ARGUMENT...    calls the function and answers its result
 * - get V                    answers the variable, 0 at first
 * - poke B OFFSET BITS N     puts a number into a buffer
 * - peek B OFFSET BITS       answers it
 * - fork COMMAND             a child does the command and ends; answers with the child's answer
 * - clone COMMAND            the same with a raw clone, which runs no handlers
 * - burst N NAME ARGUMENT... N calls from each of two threads; answers how many succeeded
 * - stress SEED MILLISECONDS PAGES   allocates, frees and launches buffer k at random; answers the number of refusals
 * - vigil MILLISECONDS       allocates a page, launches buffer k and frees, 200 times a second at most; answers the
 *   longest that one round took, in microseconds, and the number of rounds
 * - pid
 *
 * Arguments: a number, $v the value of variable v, &v its address, @b the address of buffer b.
 *
 * How a function is reached: NPU_CLIENT=linked (default), global or local (dlopen and dlsym), python (as an extension).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long);

enum { BUFFERS = 26, BUFFER_BYTES = 4096, ARGUMENTS = 12, BLOCKS = 64 };
enum { KERNEL_BYTES = 32, LAUNCH_EVERY = 8, VIGIL_US = 5000 };

static long variables[128];
static unsigned char buffers[BUFFERS][BUFFER_BYTES] __attribute__((aligned(64)));

/* What the linker binds, as in a program that was linked with CANN; names that this CANN lacks stay NULL. */
#define NAMES                                                                                                          \
    NAME(aclrtSetDevice)                                                                                               \
    NAME(rtSetDevice)                                                                                                  \
    NAME(drvGetDevNum)                                                                                                 \
    NAME(halMemAddressReserve)                                                                                         \
    NAME(halMemPoolCreate)                                                                                             \
    NAME(rtMemPoolCreate)                                                                                              \
    NAME(rtMemPoolDestroy)                                                                                             \
    NAME(rtMemPoolTrimTo)                                                                                              \
    NAME(aclrtMallocHost)                                                                                              \
    NAME(rtReserveMemAddress)                                                                                          \
    NAME(rtMapMem)                                                                                                     \
    NAME(rtUnmapMem)                                                                                                   \
    NAME(rtMemRetainAllocationHandle)                                                                                  \
    NAME(rtMallocHost)                                                                                                 \
    NAME(aclrtMemExportToShareableHandle)                                                                              \
    NAME(aclrtMemImportFromShareableHandle)                                                                            \
    NAME(aclmdlLoadFromMem)                                                                                            \
    NAME(aclrtCreateStream)                                                                                            \
    NAME(aclrtSynchronizeStream)                                                                                       \
    NAME(aclrtSynchronizeDevice)                                                                                       \
    NAME(rtStreamBeginCapture)                                                                                         \
    NAME(rtStreamEndCapture)                                                                                           \
    NAME(dcmi_init)
#define VNPU_ALLOCATE(library, name, ...) NAME(name)
#define VNPU_FREE(library, name, ...)     NAME(name)
#define VNPU_LAUNCH(library, name, ...)   NAME(name)
#define VNPU_OWN(library, name)           NAME(name)

#define NAME(name)                                                                                                     \
    extern long name(long, long, long, long, long, long, long, long, long, long, long, long) __attribute__((weak));
NAMES
#include "hooks.def"
#undef NAME

static const struct {
    const char *name;
    function function;
} linked[] = {
#define NAME(name) {#name, name},
    NAMES
#include "hooks.def"
};

static function by_link(const char *name) {
    for (size_t index = 0; index < sizeof linked / sizeof *linked; index++)
        if (strcmp(linked[index].name, name) == 0)
            return linked[index].function;
    return NULL;
}

static function by_handle(const char *name, int scope) {
    static const char *const libraries[] = {
        "libascendcl.so", "libacl_op_compiler.so", "libruntime.so",  "libascend_hal.so",
        "libdcmi.so",     "libdrvdsmi_host.so",    "libacl_dvpp.so", "libacl_dvpp_mpi.so"};
    function found = NULL;

    for (size_t index = 0; index < sizeof libraries / sizeof *libraries && found == NULL; index++) {
        void *handle = dlopen(libraries[index], RTLD_NOW | scope);

        found = handle == NULL ? NULL : (function)dlsym(handle, name);
    }
    return found;
}

static function find(const char *name) {
    const char *way = getenv("NPU_CLIENT");

    if (way == NULL || strcmp(way, "linked") == 0)
        return by_link(name);
    return by_handle(name, strcmp(way, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
}

static long value(const char *text) {
    switch (*text) {
    case '$':
        return variables[text[1] & 127];
    case '&':
        return (long)&variables[text[1] & 127];
    case '@':
        return (long)buffers[(text[1] - 'a') % BUFFERS];
    default:
        return (long)strtoull(text, NULL, 0);
    }
}

static function words_to_call(char **rest, long arguments[ARGUMENTS]) {
    char *name = strtok_r(NULL, " ", rest);
    char *word;

    for (int count = 0; count < ARGUMENTS && (word = strtok_r(NULL, " ", rest)) != NULL; count++)
        arguments[count] = value(word);
    return find(name);
}

static long apply(function f, const long a[ARGUMENTS]) {
    return (int)f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

static void call(char **rest) {
    long arguments[ARGUMENTS] = {0};
    function f = words_to_call(rest, arguments);

    if (f == NULL)
        puts("absent");
    else
        printf("%ld\n", apply(f, arguments));
}

struct burst {
    function f;
    long arguments[ARGUMENTS];
    long count;
    long successes;
};

static void *burst_thread(void *argument) {
    struct burst *burst = argument;
    const long device[ARGUMENTS] = {0};

    apply(find("aclrtSetDevice"), device);
    for (long index = 0; index < burst->count; index++)
        burst->successes += apply(burst->f, burst->arguments) == 0;
    return NULL;
}

static void burst(char **rest) {
    pthread_t threads[2];
    struct burst one = {.count = atol(strtok_r(NULL, " ", rest))};

    one.f = words_to_call(rest, one.arguments);
    struct burst other = one;
    pthread_create(&threads[0], NULL, burst_thread, &one);
    pthread_create(&threads[1], NULL, burst_thread, &other);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%ld\n", one.successes + other.successes);
}

static uint64_t now_us(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static long launch_kernel(void) {
    const long arguments[ARGUMENTS] = {0, 1, (long)buffers['k' - 'a'], KERNEL_BYTES};

    return apply(find("rtKernelLaunch"), arguments);
}

static void stress(char **rest) {
    unsigned int seed = (unsigned int)atol(strtok_r(NULL, " ", rest));
    uint64_t end = now_us() + (uint64_t)atol(strtok_r(NULL, " ", rest)) * 1000;
    unsigned int most = (unsigned int)atol(strtok_r(NULL, " ", rest));
    long blocks[BLOCKS] = {0};
    long refusals = 0;
    long release[ARGUMENTS] = {0};

    while (now_us() < end) {
        long *block = &blocks[rand_r(&seed) % BLOCKS];
        long allocate[ARGUMENTS] = {(long)block, 4096L * (1 + rand_r(&seed) % most), 0, 33};

        if (rand_r(&seed) % LAUNCH_EVERY == 0)
            refusals += launch_kernel() != 0;
        if (*block == 0) {
            refusals += apply(find("rtMalloc"), allocate) != 0;
        } else {
            release[0] = *block;
            if (apply(find("rtFree"), release) != 0)
                abort();
            *block = 0;
        }
    }
    for (int index = 0; index < BLOCKS; index++) {
        release[0] = blocks[index];
        if (blocks[index] != 0)
            apply(find("rtFree"), release);
    }
    printf("%ld\n", refusals);
}

static void vigil(char **rest) {
    uint64_t end = now_us() + (uint64_t)atol(strtok_r(NULL, " ", rest)) * 1000;
    uint64_t longest = 0;
    long rounds = 0;

    for (uint64_t before; (before = now_us()) < end; rounds++) {
        long page = 0;
        const long allocate[ARGUMENTS] = {(long)&page, 4096, 0, 33};

        apply(find("rtMalloc"), allocate);
        launch_kernel();
        const long release[ARGUMENTS] = {page};
        if (page != 0)
            apply(find("rtFree"), release);
        uint64_t took = now_us() - before;
        longest = took > longest ? took : longest;
        usleep(VIGIL_US);
    }
    printf("%llu %ld\n", (unsigned long long)longest, rounds);
}

static void obey(char *line);

static void in_child(char **rest, int raw) {
    fflush(stdout);
    pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();

    if (child == 0) {
        obey(*rest);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void poke(char **rest) {
    unsigned char *at = buffers[(*strtok_r(NULL, " ", rest) - 'a') % BUFFERS];

    at += atol(strtok_r(NULL, " ", rest));
    long bytes = atol(strtok_r(NULL, " ", rest)) / 8;
    uint64_t number = (uint64_t)value(strtok_r(NULL, " ", rest));
    memcpy(at, &number, (size_t)bytes);
    puts("0");
}

static void peek(char **rest) {
    const unsigned char *at = buffers[(*strtok_r(NULL, " ", rest) - 'a') % BUFFERS];
    uint64_t number = 0;

    at += atol(strtok_r(NULL, " ", rest));
    memcpy(&number, at, (size_t)atol(strtok_r(NULL, " ", rest)) / 8);
    printf("%llu\n", (unsigned long long)number);
}

static void obey(char *line) {
    char *rest;
    char *verb;

    line[strcspn(line, "\n")] = '\0';
    verb = strtok_r(line, " ", &rest);
    if (verb == NULL)
        return;
    if (strcmp(verb, "call") == 0)
        call(&rest);
    else if (strcmp(verb, "get") == 0)
        printf("%ld\n", variables[*strtok_r(NULL, " ", &rest) & 127]);
    else if (strcmp(verb, "poke") == 0)
        poke(&rest);
    else if (strcmp(verb, "peek") == 0)
        peek(&rest);
    else if (strcmp(verb, "fork") == 0 || strcmp(verb, "clone") == 0)
        in_child(&rest, *verb == 'c');
    else if (strcmp(verb, "burst") == 0)
        burst(&rest);
    else if (strcmp(verb, "stress") == 0)
        stress(&rest);
    else if (strcmp(verb, "vigil") == 0)
        vigil(&rest);
    else if (strcmp(verb, "pid") == 0)
        printf("%d\n", (int)getpid());
    else
        abort();
}

int main(void) {
    char line[1024];

    while (fgets(line, sizeof line, stdin) != NULL) {
        obey(line);
        fflush(stdout);
    }
    return 0;
}
