#include "fault.h"

#ifdef VNPU_TESTING

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomics.h"

void vnpu_fault(const char *point) {
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

#else

typedef int vnpu_fault_is_for_tests; /* a unit must not be empty */

#endif
