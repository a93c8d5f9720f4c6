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

/* Fills `line` with the line of a file that begins with `key`, or with all of a file of one line; 0 or an errno. */
static int read_line(const char *path, const char *key, char *line, int room) {
    FILE *file = fopen(path, "re");
    if (!file)
        return errno;
    int result = ENODATA;
    while (result && fgets(line, room, file))
        result = strncmp(line, key, strlen(key)) == 0 ? 0 : ENODATA;
    if (result && ferror(file))
        result = ESRCH; /* the thread ended while its file was open */
    fclose(file);
    return result;
}

/* SIGKILL is put on every thread of a process that is killed or exits, before the first of them ends; what was sent to
 * the process as a whole stays with it to the end. */
static bool kill_pending(const char *path) {
    static const char *const keys[] = {"SigPnd:", "ShdPnd:"};
    for (int i = 0; i < 2; i++) {
        char line[128];
        int error = read_line(path, keys[i], line, sizeof line);
        if (error)
            return error == ENOENT || error == ESRCH;
        if (strtoull(line + strlen(keys[i]), NULL, 16) & 1ull << (SIGKILL - 1))
            return true;
    }
    return false;
}

/* A thread on its last way through the kernel says so in its flags, the ninth word of its stat. */
static bool exiting(const char *path) {
    const unsigned long flag = 0x4;
    char line[1024];
    int error = read_line(path, "", line, sizeof line);
    const char *at = error ? NULL : strrchr(line, ')');
    for (int word = 2; at && word < 9; word++)
        at = strchr(at + 1, ' ');
    return at ? strtoul(at, NULL, 10) & flag : error == ENOENT || error == ESRCH;
}

bool sim_dying(const struct sim_state *state, uint32_t slot) {
    const struct sim_process *process = &state->processes[slot];
    if (process->pid_ns == 0 || process->pid_ns != pid_namespace())
        return false;
    char status[64], helper[64], leader[64];
    snprintf(status, sizeof status, "/proc/%d/task/%d/status", process->pid, process->helper);
    snprintf(helper, sizeof helper, "/proc/%d/task/%d/stat", process->pid, process->helper);
    snprintf(leader, sizeof leader, "/proc/%d/stat", process->pid);
    return kill_pending(status) || exiting(helper) || exiting(leader);
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
