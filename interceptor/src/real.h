/* The real functions behind the hooks, found when they are first needed. */
#ifndef VNPU_REAL_H
#define VNPU_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomics.h"

enum vnpu_library { ACL, OP_COMPILER, RT, HAL, DCMI, DSMI, DVPP, DVPP_MPI, VNPU_LIBRARIES };

#define VNPU_ROW(library, name) VNPU_HOOK_##name,
enum vnpu_hook {
#define VNPU_ALLOCATE(library, name, ...) VNPU_ROW(library, name)
#define VNPU_FREE(library, name, ...)     VNPU_ROW(library, name)
#define VNPU_LAUNCH(library, name, ...)   VNPU_ROW(library, name)
#define VNPU_OWN(library, name)           VNPU_ROW(library, name)
#include "hooks.def"
#undef VNPU_ALLOCATE
#undef VNPU_FREE
#undef VNPU_LAUNCH
#undef VNPU_OWN
    VNPU_HOOKS
};
#undef VNPU_ROW

extern void *vnpu_real_functions[VNPU_HOOKS];

void *vnpu_look_up(enum vnpu_hook hook);

/* NULL where this CANN does not have it. */
static inline void *vnpu_real(enum vnpu_hook hook) {
    void *function = vnpu_load(&vnpu_real_functions[hook]);

    return function != NULL ? function : vnpu_look_up(hook);
}

/* Any function of a CANN library that is no hook of ours, looked up anew at each call. */
void *vnpu_foreign(enum vnpu_library library, const char *name);

/* Codes that callers understand. */
int vnpu_out_of_memory(enum vnpu_library library);
int vnpu_not_supported(enum vnpu_library library);
int vnpu_denied(enum vnpu_library library);

/* The real dlsym, whoever else interposes it. */
void *vnpu_real_dlsym(void *handle, const char *name);

#define VNPU_EXPORT __attribute__((visibility("default")))

#endif
