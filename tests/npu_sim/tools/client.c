/*
 * npu-client: a process that uses the simulated NPU as it is told, one call a line.
 *
 *   npu-client [--global] LIBRARY...
 *
 * Libraries are loaded RTLD_LOCAL and names looked up in their handles; with --global they are loaded RTLD_GLOBAL and
 * looked up as RTLD_DEFAULT does. Lines on stdin:
 *
 *   NAME ARG...              calls a function of the libraries; arguments are whole numbers (up to 12)
 *   repeat N NAME ARG...     the same up to N times, until it does not return 0
 *   fork NAME ARG...         the same in a child made by fork; clone: in one made by the bare system call
 *   thread NAME ARG...       the same in a thread of its own
 *   poke VAR OFFSET BYTES N  puts a number into a variable
 *   get VAR...               only tells variables
 *   peek VAR OFFSET          tells eight bytes of a variable, as how often
 *   has NAME                 1 when the name can be found, else 0
 *
 * ARG: a number, VAR (its first eight bytes), &VAR (its address), 'TEXT (the address of the text, no blanks). Variables
 * are made on first use, of 512 zero bytes, and named by lower-case letters and digits.
 *
 * One line of answer each: the code, how often the function was called, how many ns that took, then VAR=NUMBER for each
 * variable in the line. "?" and a reason when the line makes no sense.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS 12
#define VARIABLES 256
#define BYTES     512

struct variable {
    char name[32];
    uint64_t value[BYTES / 8];
};

typedef uint64_t function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                          uint64_t, uint64_t, uint64_t);

struct call {
    function *function;
    uint64_t arguments[ARGUMENTS];
    uint64_t times;
    int code;
    uint64_t done, ns;
};

static void *libraries[16];
static int library_count;
static struct variable variables[VARIABLES];

static void *find(const char *name) {
    void *found = library_count ? NULL : dlsym(RTLD_DEFAULT, name);
    for (int i = 0; !found && i < library_count; i++)
        found = dlsym(libraries[i], name);
    return found;
}

static struct variable *variable(const char *name) {
    for (int i = 0; i < VARIABLES; i++) {
        if (!variables[i].name[0])
            strncpy(variables[i].name, name, sizeof variables[i].name - 1);
        if (strcmp(variables[i].name, name) == 0)
            return &variables[i];
    }
    fprintf(stderr, "npu-client: too many variables\n");
    exit(1);
}

static uint64_t argument(const char *text) {
    if (*text == '\'')
        return (uint64_t)(uintptr_t)(text + 1);
    if (*text == '&')
        return (uint64_t)(uintptr_t)variable(text + 1)->value;
    if (*text >= 'a' && *text <= 'z')
        return variable(text)->value[0];
    return strtoull(text, NULL, 0);
}

static uint64_t now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void run(struct call *call) {
    const uint64_t *a = call->arguments;
    uint64_t start = now();
    for (call->done = 0; call->done < call->times && call->code == 0; call->done++)
        call->code = (int)call->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    call->ns = now() - start;
}

static void *run_in_thread(void *call) {
    run(call);
    return NULL;
}

/* The child shares nothing but the page on which it leaves its answer. */
static void run_in_child(struct call *call, pid_t child, struct call *answer) {
    if (child == 0) {
        run(answer);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    *call = *answer;
}

static void perform(const char *how, struct call *call) {
    pthread_t thread;
    struct call *answer = mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *answer = *call;
    if (strcmp(how, "fork") == 0)
        run_in_child(call, fork(), answer);
    else if (strcmp(how, "clone") == 0)
        run_in_child(call, (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), answer);
    else if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, run_in_thread, call) == 0)
        pthread_join(thread, NULL);
    else
        run(call);
    munmap(answer, sizeof *answer);
}

static void answer(const struct call *call, char **words, int count) {
    printf("%d %llu %llu", call->code, (unsigned long long)call->done, (unsigned long long)call->ns);
    for (int i = 0; i < count; i++) {
        const char *name = words[i] + (words[i][0] == '&');
        if (*name >= 'a' && *name <= 'z')
            printf(" %s=%llu", name, (unsigned long long)variable(name)->value[0]);
    }
    printf("\n");
}

static void call_function(const char *how, uint64_t times, char **words, int count) {
    struct call call = {.times = times};
    if (count == 0 || count - 1 > ARGUMENTS || !(call.function = (function *)(uintptr_t)find(words[0]))) {
        printf("? no such function: %s\n", count ? words[0] : "");
        return;
    }
    for (int i = 1; i < count; i++)
        call.arguments[i - 1] = argument(words[i]);
    perform(how, &call);
    answer(&call, words + 1, count - 1);
}

static void poke(char **words) {
    uint64_t offset = argument(words[1]), bytes = argument(words[2]), value = argument(words[3]);
    if (offset > BYTES || bytes > 8 || offset + bytes > BYTES) {
        printf("? outside of the variable\n");
        return;
    }
    memcpy((char *)variable(words[0])->value + offset, &value, bytes);
    printf("0 0 0\n");
}

static void peek(char **words) {
    uint64_t offset = argument(words[1]), value = 0;
    if (offset + sizeof value <= BYTES)
        memcpy(&value, (char *)variable(words[0])->value + offset, sizeof value);
    printf("0 %llu 0\n", (unsigned long long)value);
}

static void obey(char *line) {
    char *words[ARGUMENTS + 4];
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < ARGUMENTS + 4; word = strtok(NULL, " \n"))
        words[count++] = word;
    if (count == 0)
        printf("? nothing to do\n");
    else if (strcmp(words[0], "poke") == 0 && count == 5)
        poke(words + 1);
    else if (strcmp(words[0], "peek") == 0 && count == 3)
        peek(words + 1);
    else if (strcmp(words[0], "get") == 0)
        answer(&(struct call){0}, words + 1, count - 1);
    else if (strcmp(words[0], "has") == 0 && count == 2)
        printf("%d 0 0\n", find(words[1]) != NULL);
    else if (strcmp(words[0], "repeat") == 0 && count > 2)
        call_function("here", argument(words[1]), words + 2, count - 2);
    else if (strcmp(words[0], "fork") == 0 || strcmp(words[0], "clone") == 0 || strcmp(words[0], "thread") == 0)
        call_function(words[0], 1, words + 1, count - 1);
    else
        call_function("here", 1, words, count);
    fflush(stdout);
}

int main(int argc, char **argv) {
    bool global = argc > 1 && strcmp(argv[1], "--global") == 0;
    for (int i = global ? 2 : 1; i < argc && i < 16; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!library) {
            fprintf(stderr, "npu-client: %s\n", dlerror());
            return 1;
        }
        if (!global)
            libraries[library_count++] = library;
    }
    char line[4096];
    while (fgets(line, sizeof line, stdin))
        obey(line);
    return 0;
}
