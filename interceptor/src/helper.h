/* The one thread of ours in a process: its life tells the kernel, and through it everybody, that the process lives. */
#ifndef VNPU_HELPER_H
#define VNPU_HELPER_H

struct vnpu_process;

/* Starts the helper and waits until it has a slot. NULL, or one line of reason. */
const char *vnpu_helper_start(struct vnpu_process *self);

#endif
