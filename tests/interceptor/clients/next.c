/* A library that wraps a function of libc through RTLD_NEXT, as OpenMP and allocators do. */
#include <dlfcn.h>
#include <unistd.h>

pid_t getppid(void) {
    pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");

    return next();
}
