/* Kernel binaries and the functions in them. A binary costs device memory; a function is its name, which may say how
 * long it takes. */
#include "binary.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

struct binary {
    uint64_t incarnation;
    void *overhead;
    bool loaded;
    struct binary *next;
};

static struct binary *binaries; /* under rt_lock, as the next two */
static struct rt_function *functions;
static _Atomic(struct rt_function *) stubs[BUCKETS];

/* "..._250us" -> 250000; UINT64_MAX when the name does not tell. */
static uint64_t time_in(const char *name) {
    const char *last = strrchr(name, '_');
    char *unit;
    if (!last || last[1] < '0' || last[1] > '9')
        return UINT64_MAX;
    uint64_t number = strtoull(last + 1, &unit, 10);
    if (strcmp(unit, "us") == 0)
        return number * 1000;
    return strcmp(unit, "ms") == 0 ? number * 1000000 : UINT64_MAX;
}

static rtError_t load(uint64_t length, void **handle) {
    RT_CURRENT(context);
    if (!handle || length == 0)
        return RT_PARAM_INVALID;
    void *overhead;
    rtError_t error = rt_overhead_take(context->card, length, &overhead);
    if (error)
        return error;
    struct binary *binary = malloc(sizeof *binary);
    if (!binary)
        abort();
    pthread_mutex_lock(&rt_lock);
    *binary = (struct binary){npu_sim_incarnation(), overhead, true, binaries};
    binaries = binary;
    pthread_mutex_unlock(&rt_lock);
    *handle = binary;
    return 0;
}

static struct binary *known(void *handle) {
    struct binary *at = binaries;
    while (at && at != handle)
        at = at->next;
    return at && at->loaded && at->incarnation == npu_sim_incarnation() ? at : NULL;
}

static rtError_t unload(void *handle) {
    pthread_mutex_lock(&rt_lock);
    struct binary *binary = known(handle);
    if (binary) {
        binary->loaded = false;
        rt_overhead_give(binary->overhead);
    }
    pthread_mutex_unlock(&rt_lock);
    return binary ? 0 : RT_PARAM_INVALID;
}

static struct rt_function *add_function(const void *stub, const char *name) {
    struct rt_function *function = calloc(1, sizeof *function);
    if (!function)
        abort();
    function->magic = RT_FUNCTION;
    function->ns = time_in(name);
    function->stub = stub;
    function->next = functions;
    functions = function;
    return function;
}

static _Atomic(struct rt_function *) *bucket(const void *stub) {
    return &stubs[((uintptr_t)stub >> 3) % BUCKETS];
}

const struct rt_function *rt_function_of_stub(const void *stub) {
    const struct rt_function *at = atomic_load_explicit(bucket(stub), memory_order_acquire);
    while (at && at->stub != stub)
        at = at->in_bucket;
    return at;
}

RT_API rtError_t rtDevBinaryRegister(const rtDevBinary_t *binary, void **handle) {
    SIM_ENTER(rtDevBinaryRegister);
    return binary ? load(binary->length, handle) : RT_PARAM_INVALID;
}

RT_API rtError_t rtDevBinaryUnRegister(void *handle) {
    SIM_ENTER(rtDevBinaryUnRegister);
    return unload(handle);
}

RT_API rtError_t rtFunctionRegister(void *binary, const void *stub, const char *name, const void *info, uint32_t mode) {
    SIM_ENTER(rtFunctionRegister);
    (void)info;
    (void)mode;
    pthread_mutex_lock(&rt_lock);
    bool valid = known(binary) && stub && name;
    if (valid) {
        struct rt_function *function = add_function(stub, name);
        function->in_bucket = *bucket(stub);
        atomic_store_explicit(bucket(stub), function, memory_order_release);
    }
    pthread_mutex_unlock(&rt_lock);
    return valid ? 0 : RT_PARAM_INVALID;
}

RT_API rtError_t rtsBinaryLoadFromData(const void *data, uint64_t length, const void *config, rtBinHandle *handle) {
    SIM_ENTER(rtsBinaryLoadFromData);
    (void)config;
    return data ? load(length, handle) : RT_PARAM_INVALID;
}

RT_API rtError_t rtsBinaryUnload(rtBinHandle handle) {
    SIM_ENTER(rtsBinaryUnload);
    return unload(handle);
}

RT_API rtError_t rtsFuncGetByName(const rtBinHandle binary, const char *name, rtFuncHandle *function) {
    SIM_ENTER(rtsFuncGetByName);
    pthread_mutex_lock(&rt_lock);
    bool valid = known(binary) && name && function;
    if (valid)
        *function = add_function(NULL, name);
    pthread_mutex_unlock(&rt_lock);
    return valid ? 0 : RT_PARAM_INVALID;
}
