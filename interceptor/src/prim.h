/* What libvnpu and the limiter ask of the operating system: clock, futex, files, locks, identity.
 *
 * The only unit besides the helper thread that makes system calls, so that it can be read for what they may do. */
#ifndef VNPU_PRIM_H
#define VNPU_PRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file mapped shared and writable, as it was when it was opened. */
struct vnpu_mapping {
    int descriptor;
    void *base;
    size_t size;
    dev_t device;
    ino_t inode;
};

uint64_t vnpu_now_us(void); /* CLOCK_MONOTONIC */
void vnpu_sleep_us(uint64_t microseconds);

/* Sleeps while `*word` is `expected`, at most `timeout_us`; false only when that time passed. May wake for no reason.
 */
bool vnpu_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_us);
void vnpu_futex_wake_all(uint32_t *word);

int32_t vnpu_thread_id(void);
/* The inode of a namespace of this process, `name` being for example "mnt"; 0 when /proc does not tell. */
uint64_t vnpu_namespace(const char *name);
/* Whether process `pid` of this pid namespace has ended and closed its files: it is no more, or a zombie without
 * threads. */
bool vnpu_process_gone(int32_t pid);

/* Opens a regular file for reading and writing, never through a symlink, close-on-exec; -1 and errno otherwise. */
int vnpu_open_regular(const char *path, off_t *size);
/* Maps the whole of an open regular file that has all its blocks; false and errno otherwise. Takes the descriptor over.
 */
bool vnpu_map(int descriptor, struct vnpu_mapping *mapping);
void vnpu_unmap(struct vnpu_mapping *mapping);
/* Closes the descriptor and keeps the mapping. */
void vnpu_mapping_close(struct vnpu_mapping *mapping);
/* Whether the descriptor is still that file's: an application may close what it does not know, and reuse its number. */
bool vnpu_still_open(const struct vnpu_mapping *mapping);
/* Whether `path` still names the file that is mapped. */
bool vnpu_same_file(const char *path, const struct vnpu_mapping *mapping);

/* Open-file-description locks on one byte: the kernel drops them when the last descriptor goes. */
bool vnpu_lock_try(int descriptor, off_t byte);
/* The same, but any number may share it. */
bool vnpu_lock_share(int descriptor, off_t byte);
bool vnpu_lock_wait(int descriptor, off_t byte);
void vnpu_unlock(int descriptor, off_t byte);
/* Whether somebody else holds or shares it. */
bool vnpu_lock_held(int descriptor, off_t byte);

#endif
