#include "prim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.17 does not name these; the numbers are the kernel's ABI. */
enum { OFD_GETLK = 36, OFD_SETLK = 37, OFD_SETLKW = 38 };

uint64_t vnpu_now_us(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct timespec span(uint64_t microseconds) {
    return (struct timespec){.tv_sec = (time_t)(microseconds / 1000000),
                             .tv_nsec = (long)(microseconds % 1000000) * 1000};
}

void vnpu_sleep_us(uint64_t microseconds) {
    struct timespec left = span(microseconds);

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool vnpu_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_us) {
    struct timespec timeout = span(timeout_us);

    /* Not FUTEX_PRIVATE_FLAG: the word lies in a file that other processes map elsewhere. */
    return syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0) == 0 || errno != ETIMEDOUT;
}

void vnpu_futex_wake_all(uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int32_t vnpu_thread_id(void) {
    return (int32_t)syscall(SYS_gettid);
}

uint64_t vnpu_namespace(const char *name) {
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

bool vnpu_process_gone(int32_t pid) {
    char path[64];
    char text[512];
    char state;
    long threads;

    if (kill(pid, 0) != 0 && errno == ESRCH)
        return true;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    /* The name in parentheses may hold anything, so the fields are counted from its last one. */
    const char *fields = strrchr(text, ')');
    if (fields == NULL || sscanf(fields, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                                 &state, &threads) != 2)
        return false;
    return (state == 'Z' || state == 'X') && threads <= 1;
}

int vnpu_open_regular(const char *path, off_t *size) {
    struct stat status;
    /* O_NONBLOCK: a fifo in place of the file must not hold the caller up. */
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        *size = status.st_size;
        return descriptor;
    }
    close(descriptor);
    errno = EINVAL;
    return -1;
}

bool vnpu_map(int descriptor, struct vnpu_mapping *mapping) {
    struct stat status;

    if (fstat(descriptor, &status) != 0 || status.st_size <= 0)
        goto refused;
    /* A page that the file system has not reserved can end its reader with SIGBUS when there is no room left. */
    if ((off_t)status.st_blocks * 512 < status.st_size)
        goto refused;
    void *base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED)
        goto refused;
    *mapping = (struct vnpu_mapping){.descriptor = descriptor,
                                     .base = base,
                                     .size = (size_t)status.st_size,
                                     .device = status.st_dev,
                                     .inode = status.st_ino};
    return true;
refused:
    close(descriptor);
    return false;
}

void vnpu_unmap(struct vnpu_mapping *mapping) {
    munmap(mapping->base, mapping->size);
    if (mapping->descriptor >= 0)
        close(mapping->descriptor);
    *mapping = (struct vnpu_mapping){.descriptor = -1};
}

void vnpu_mapping_close(struct vnpu_mapping *mapping) {
    close(mapping->descriptor);
    mapping->descriptor = -1;
}

bool vnpu_still_open(const struct vnpu_mapping *mapping) {
    struct stat status;

    return fstat(mapping->descriptor, &status) == 0 && status.st_dev == mapping->device &&
           status.st_ino == mapping->inode;
}

bool vnpu_same_file(const char *path, const struct vnpu_mapping *mapping) {
    struct stat status;

    return lstat(path, &status) == 0 && status.st_dev == mapping->device && status.st_ino == mapping->inode;
}

static int lock(int descriptor, int command, short type, off_t byte, short *found) {
    struct flock request = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result = fcntl(descriptor, command, &request);

    if (found != NULL)
        *found = request.l_type;
    return result;
}

bool vnpu_lock_try(int descriptor, off_t byte) {
    return lock(descriptor, OFD_SETLK, F_WRLCK, byte, NULL) == 0;
}

bool vnpu_lock_share(int descriptor, off_t byte) {
    return lock(descriptor, OFD_SETLK, F_RDLCK, byte, NULL) == 0;
}

bool vnpu_lock_wait(int descriptor, off_t byte) {
    int result;

    do
        result = lock(descriptor, OFD_SETLKW, F_WRLCK, byte, NULL);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

void vnpu_unlock(int descriptor, off_t byte) {
    lock(descriptor, OFD_SETLK, F_UNLCK, byte, NULL);
}

bool vnpu_lock_held(int descriptor, off_t byte) {
    short found = F_UNLCK;

    return lock(descriptor, OFD_GETLK, F_WRLCK, byte, &found) == 0 && found != F_UNLCK;
}
