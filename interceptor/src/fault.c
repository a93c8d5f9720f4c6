#include "fault.h"

#ifdef VNPU_TESTING

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomics.h"
#include "prim.h"

enum { PAUSE_US = 200000 };

static void strike_by_file(const char *point) {
    char path[512];
    char what[8] = "";
    const char *directory = getenv("VNPU_FAULTS");

    if (directory == NULL || snprintf(path, sizeof path, "%s/%s", directory, point) >= (int)sizeof path)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t length = read(file, what, sizeof what - 1);
    close(file);
    /* Whoever takes the file away is the one. */
    if (length <= 0 || unlink(path) != 0)
        return;
    if (strcmp(what, "pause") == 0)
        vnpu_sleep_us(PAUSE_US);
    else
        raise(SIGKILL);
}

static void strike_by_pass(const char *point) {
    static unsigned int passes;
    char name[64];
    char action[8];
    unsigned int pass;
    const char *wanted = getenv("VNPU_FAULT");

    if (wanted == NULL || sscanf(wanted, "%63[^:]:%7[^:]:%u", name, action, &pass) != 3 || strcmp(name, point) != 0)
        return;
    if (vnpu_add(&passes, 1) + 1 == pass)
        raise(strcmp(action, "kill") == 0 ? SIGKILL : SIGSTOP);
}

void vnpu_fault(const char *point) {
    strike_by_pass(point);
    strike_by_file(point);
}

uint64_t vnpu_milliseconds(const char *name, uint64_t standard) {
    const char *other = getenv(name);

    return other == NULL ? standard : strtoull(other, NULL, 10);
}

#else

typedef int vnpu_fault_is_for_tests; /* a unit must not be empty */

#endif
