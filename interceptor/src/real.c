#include "real.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
    const char *name;
    enum vnpu_library library;
} hooks[VNPU_HOOKS] = {
#define VNPU_ROW(owner, symbol)           {#symbol, owner},
#define VNPU_ALLOCATE(library, name, ...) VNPU_ROW(library, name)
#define VNPU_FREE(library, name, ...)     VNPU_ROW(library, name)
#define VNPU_LAUNCH(library, name, ...)   VNPU_ROW(library, name)
#define VNPU_OWN(library, name)           VNPU_ROW(library, name)
#include "hooks.def"
};

void *vnpu_real_functions[VNPU_HOOKS];

/* Where a library's functions may stand, by name as it is loaded; nothing is ever loaded by us. */
static const char *const places[VNPU_LIBRARIES][4] = {
    [ACL] = {"libascendcl.so", "libacl_rt.so", "libruntime.so"},
    [OP_COMPILER] = {"libacl_op_compiler.so"},
    [RT] = {"libruntime.so", "libascendcl.so"},
    [HAL] = {"libascend_hal.so"},
    [DCMI] = {"libdcmi.so"},
    [DSMI] = {"libdrvdsmi_host.so"},
    [DVPP] = {"libacl_dvpp.so"},
    [DVPP_MPI] = {"libacl_dvpp_mpi.so"},
};

void *vnpu_foreign(enum vnpu_library library, const char *name) {
    /* First the chain of interposers behind us: profilers and checkers of the vendor are preloaded too. */
    void *found = vnpu_real_dlsym(RTLD_NEXT, name);

    /* Python loads extension modules into scopes of their own, where RTLD_NEXT does not look. */
    for (const char *const *place = places[library]; found == NULL && *place != NULL; place++) {
        void *handle = dlopen(*place, RTLD_LAZY | RTLD_NOLOAD);

        if (handle == NULL)
            continue;
        found = vnpu_real_dlsym(handle, name);
        /* A library whose function we keep must not be unloaded. */
        if (found == NULL)
            dlclose(handle);
    }
    return found;
}

void *vnpu_look_up(enum vnpu_hook hook) {
    void *found = vnpu_foreign(hooks[hook].library, hooks[hook].name);

    if (found != NULL)
        vnpu_store(&vnpu_real_functions[hook], found);
    return found;
}

int vnpu_out_of_memory(enum vnpu_library library) {
    return library == HAL ? 6 : 207001;
}

int vnpu_not_supported(enum vnpu_library library) {
    switch (library) {
    case HAL:
    case DSMI:
        return 0xfffe;
    case DCMI:
        return -8255;
    default:
        return 207000;
    }
}

int vnpu_denied(enum vnpu_library library) {
    switch (library) {
    case HAL:
    case DSMI:
        return 46; /* operation not permitted */
    case DCMI:
        return -8002; /* operation not permitted */
    default:
        return 507899; /* internal error of the driver */
    }
}
