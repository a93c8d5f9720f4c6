#include "file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t sim_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

const char *sim_file_path(void) {
    const char *path = getenv("NPU_SIM_STATE");
    return path && *path ? path : "/dev/shm/npu_sim";
}

static int map(const char *path, struct sim_state **state) {
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size == sizeof(struct sim_state)) {
        void *at = mmap(NULL, sizeof(struct sim_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        *state = at == MAP_FAILED ? NULL : at;
    }
    close(fd);
    if (!*state) {
        errno = EPROTO;
        return -1;
    }
    madvise(*state, sizeof(struct sim_state), MADV_DONTDUMP);
    if (atomic_load(&(*state)->magic) != NPU_SIM_MAGIC || (*state)->version != NPU_SIM_VERSION) {
        munmap(*state, sizeof(struct sim_state));
        *state = NULL;
        errno = EPROTO;
        return -1;
    }
    return 0;
}

static bool settings_from_environment(struct sim_settings *settings) {
    for (const char *const *name = sim_setting_names; *name; name++) {
        char variable[64];
        int n = snprintf(variable, sizeof variable, "NPU_SIM_%s", *name);
        for (int i = 0; i < n; i++)
            variable[i] = (char)toupper((unsigned char)variable[i]);
        const char *value = getenv(variable);
        if (value && !sim_setting(settings, *name, value, true)) {
            fprintf(stderr, "npu_sim: %s=%s makes no sense\n", variable, value);
            errno = EINVAL;
            return false;
        }
    }
    return true;
}

static void init_processes(struct sim_state *state) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < NPU_SIM_PROCESSES; i++)
        pthread_mutex_init(&state->processes[i].alive, &attr);
    pthread_mutexattr_destroy(&attr);
}

static void init_state(struct sim_state *state) {
    state->version = NPU_SIM_VERSION;
    state->size = sizeof *state;
    state->epoch = sim_now();
    init_processes(state);
    state->schedules[0].lengths[SIM_SCHEDULE_CARDS] = (uint32_t)state->settings.cards;
    atomic_store(&state->magic, NPU_SIM_MAGIC);
}

/* 0, or -1 with errno. Any user may use the cards, as on a node where pods run as many users. */
static int fill(int fd, struct sim_state **state) {
    if (fchmod(fd, 0666) < 0 || ftruncate(fd, sizeof(struct sim_state)) < 0)
        return -1;
    void *at = mmap(NULL, sizeof(struct sim_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        return -1;
    *state = at;
    sim_setting(&(*state)->settings, "cards", "1", true);
    sim_setting(&(*state)->settings, "memory_mib", "65536", true);
    sim_setting(&(*state)->settings, "kernel_us", "50", true);
    sim_setting(&(*state)->settings, "context_mib", "32", true);
    sim_setting(&(*state)->settings, "stream_kib", "2048", true);
    sim_setting(&(*state)->settings, "arbiter", "fifo", true);
    sim_setting(&(*state)->settings, "chip", "Ascend910B3", true);
    sim_setting(&(*state)->settings, "driver", "25.5.0", true);
    if (!settings_from_environment(&(*state)->settings))
        return -1;
    init_state(*state);
    return 0;
}

/* Published by a rename that replaces nothing, so that whoever loses the race uses the winner's. */
static int make(const char *path) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s.XXXXXX", path) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -1;
    struct sim_state *state = NULL;
    int result = fill(fd, &state);
    if (result == 0 && renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE) < 0 && errno != EEXIST)
        result = -1;
    int error = errno;
    if (state)
        munmap(state, sizeof *state);
    unlink(name);
    close(fd);
    errno = error;
    return result;
}

struct sim_state *sim_file_open(const char *path, bool create) {
    struct sim_state *state = NULL;
    if (map(path, &state) == 0)
        return state;
    if (errno != ENOENT || !create || make(path) < 0)
        return NULL;
    return map(path, &state) == 0 ? state : NULL;
}
