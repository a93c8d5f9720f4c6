/* dlsym, interposed: a client that asks a library of CANN for a function gets the hook, as one that is linked does.
 *
 * The real dlsym is asked first, so a name that this CANN lacks resolves to nothing. RTLD_NEXT and RTLD_DEFAULT depend
 * on who calls, so for them the trampoline (dlsym_<machine>.S) jumps to the real one and leaves no frame of ours
 * behind. */
#include <dlfcn.h>
#include <string.h>

#include "real.h"

#ifdef VNPU_SANITIZED

/* The sanitizers look up their own functions before they can bear code that they instrumented. */
void *vnpu_real_dlsym(void *handle, const char *name) {
    return dlsym(handle, name);
}

#else

#ifdef __aarch64__
#define OLDEST_GLIBC "GLIBC_2.17"
#else
#define OLDEST_GLIBC "GLIBC_2.2.5"
#endif

typedef void *(*look_up)(void *handle, const char *name);

static look_up real_dlsym(void) {
    static look_up found;
    look_up known = vnpu_load(&found);

    if (known == NULL) {
        known = (look_up)dlvsym(RTLD_NEXT, "dlsym", OLDEST_GLIBC);
        vnpu_store(&found, known);
    }
    return known;
}

void *vnpu_real_dlsym(void *handle, const char *name) {
    return real_dlsym()(handle, name);
}

#define VNPU_ROW(library, name)           extern void name(void);
#define VNPU_ALLOCATE(library, name, ...) VNPU_ROW(library, name)
#define VNPU_FREE(library, name, ...)     VNPU_ROW(library, name)
#define VNPU_LAUNCH(library, name, ...)   VNPU_ROW(library, name)
#define VNPU_OWN(library, name)           VNPU_ROW(library, name)
#include "hooks.def"
#undef VNPU_ROW

static const struct {
    const char *name;
    void (*hook)(void);
} hooks[VNPU_HOOKS] = {
#define VNPU_ROW(library, symbol) {#symbol, symbol},
#include "hooks.def"
};

/* Python alone looks up thousands of names: most are told apart by their first letter. */
static bool may_be_hooked(const char *name) {
    return *name == 'a' || *name == 'r' || *name == 'h' || *name == 'd';
}

static void *look_up_in_library(void *handle, const char *name) {
    void *found = real_dlsym()(handle, name);

    if (found == NULL || !may_be_hooked(name))
        return found;
    for (int hook = 0; hook < VNPU_HOOKS; hook++) {
        if (strcmp(hooks[hook].name, name) != 0)
            continue;
        void *none = NULL;
        if (found != (void *)hooks[hook].hook)
            vnpu_swap(&vnpu_real_functions[hook], &none, found);
        return (void *)hooks[hook].hook;
    }
    return found;
}

/* Where the trampoline goes. */
look_up vnpu_dlsym_target(void *handle);
look_up vnpu_dlsym_target(void *handle) {
    return handle == RTLD_NEXT || handle == RTLD_DEFAULT ? real_dlsym() : look_up_in_library;
}

#endif
