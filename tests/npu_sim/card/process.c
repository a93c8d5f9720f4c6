#include "process.h"

#include "file.h"
#include "schedule.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A page that the kernel empties in every child, however it is made: fork, clone, vfork. */
struct page {
    pthread_mutex_t joining; /* all zero is an unlocked mutex */
    _Atomic bool joined;
    struct sim_self self;
};

static struct page *page(void) {
    static _Atomic(struct page *) shared;
    struct page *seen = atomic_load_explicit(&shared, memory_order_acquire);
    if (seen)
        return seen;
    struct page *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    madvise(made, sizeof *made, MADV_WIPEONFORK);
    if (atomic_compare_exchange_strong(&shared, &seen, made))
        return made;
    munmap(made, sizeof *made);
    return seen;
}

bool sim_alive(const struct sim_state *state, uint32_t slot, uint32_t generation) {
    const struct sim_process *process = &state->processes[slot];
    /* The first word of a mutex is the one that the kernel knows: the owner's thread id, cleared when the owner ends.
     */
    uint32_t word = atomic_load_explicit((const _Atomic uint32_t *)(const void *)&process->alive, memory_order_acquire);
    const uint32_t thread_id = 0x3fffffff;
    return (word & thread_id) != 0 && atomic_load_explicit(&process->generation, memory_order_acquire) == generation;
}

static uint64_t pid_namespace(void) {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

bool sim_dying(const struct sim_state *state, uint32_t slot) {
    const struct sim_process *process = &state->processes[slot];
    if (process->pid_ns == 0 || process->pid_ns != pid_namespace())
        return false;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", process->pid, process->helper);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT || errno == ESRCH;
    unsigned long long pending = 0;
    char line[128];
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "SigPnd: %llx", &pending) == 1)
            break;
    fclose(file);
    return pending & 1ull << (SIGKILL - 1); /* kill and exit both put it on every thread before the first one ends */
}

static bool claim(struct sim_process *process) {
    int result = pthread_mutex_trylock(&process->alive);
    if (result == EOWNERDEAD)
        result = pthread_mutex_consistent(&process->alive);
    return result == 0;
}

struct join {
    struct sim_self *self;
    sem_t done;
};

/* Takes the next slot in turn: one that fell free a moment ago is taken again last, so that a thread of its last owner
 * that is on its way out cannot meet a new one. */
static bool take_slot(struct sim_self *self) {
    struct sim_state *state = self->state;
    for (uint32_t i = 0; i < NPU_SIM_PROCESSES; i++) {
        uint32_t slot = (uint32_t)(atomic_fetch_add(&state->claims, 1) % NPU_SIM_PROCESSES);
        struct sim_process *process = &state->processes[slot];
        if (!claim(process))
            continue;
        process->pid = getpid();
        process->helper = (int32_t)syscall(SYS_gettid);
        process->pid_ns = pid_namespace();
        self->generation = atomic_fetch_add(&process->generation, 1) + 1;
        self->slot = slot;
        return true;
    }
    return false;
}

/* Lives as long as the process and does nothing: that it lives is what the others want to know. */
static void *helper(void *argument) {
    struct join *join = argument;
    bool taken = take_slot(join->self);
    if (!taken)
        join->self->state = NULL;
    sem_post(&join->done);
    while (taken)
        pause();
    return NULL;
}

static bool start_helper(struct sim_self *self) {
    struct join join = {.self = self};
    sem_init(&join.done, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, helper, &join);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) {
        pthread_detach(thread);
        while (sem_wait(&join.done) != 0) {
        }
    }
    sem_destroy(&join.done);
    return !failed && self->state;
}

/* Room for copies, untouched until used: large arrays of which little is in use. */
static bool make_room(struct sim_self *self) {
    size_t bytes = sizeof *self->schedule + NPU_SIM_CARDS * sizeof **self->memory;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    self->schedule = at;
    for (int i = 0; i < NPU_SIM_CARDS; i++)
        self->memory[i] = (struct sim_memory *)(self->schedule + 1) + i;
    return true;
}

static bool join(struct sim_self *self) {
    if (!self->schedule && !make_room(self))
        return false;
    self->state = sim_file_open(sim_file_path(), true);
    if (!self->state) {
        fprintf(stderr, "npu_sim: %s: %s\n", sim_file_path(), strerror(errno));
        return false;
    }
    struct sim_state *state = self->state;
    if (!start_helper(self)) {
        fprintf(stderr, "npu_sim: %s: no free process slot\n", sim_file_path());
        munmap(state, sizeof *state);
        return false;
    }
    const char *tag = getenv("NPU_SIM_TAG");
    if (!sim_schedule_tag(self, tag && *tag ? tag : "default", &self->tag)) {
        fprintf(stderr, "npu_sim: more than %d tags\n", NPU_SIM_TAGS);
        return false;
    }
    atomic_store(&state->processes[self->slot].tag, self->tag);
    return true;
}

struct sim_self *sim_self_if_joined(void) {
    struct page *own = page();
    return own && atomic_load_explicit(&own->joined, memory_order_acquire) ? &own->self : NULL;
}

struct sim_self *sim_self(void) {
    struct page *own = page();
    if (!own)
        return NULL;
    if (!atomic_load_explicit(&own->joined, memory_order_acquire)) {
        pthread_mutex_lock(&own->joining);
        if (!own->joined)
            atomic_store_explicit(&own->joined, join(&own->self), memory_order_release);
        pthread_mutex_unlock(&own->joining);
    }
    return own->joined ? &own->self : NULL;
}
