/*
 * libascendcl.so: the umbrella over libacl_rt.so, with what stands above the runtime: whole models and single
 * operators. Each ends in one launch through the runtime's public names. A model is its description: bytes that may
 * begin with a struct npu_sim_kernel.
 */
#include "impl.h"
#include "npu_sim/kernel.h"

#include <pthread.h>
#include <string.h>

#define MODELS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool loaded;
    struct npu_sim_kernel kernel;
} models[MODELS];

ACL_API aclError aclInit(const char *config) {
    SIM_ENTER(aclInit);
    (void)config;
    return 0;
}

ACL_API aclError aclFinalize(void) {
    SIM_ENTER(aclFinalize);
    return 0;
}

ACL_API const char *aclGetRecentErrMsg(void) {
    return NULL;
}

ACL_API aclError aclmdlLoadFromMem(const void *data, size_t size, uint32_t *id) {
    SIM_ENTER(aclmdlLoadFromMem);
    if (!data || size == 0 || !id)
        return ACL_INVALID_PARAM;
    aclError error = ACL_INVALID_PARAM;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; error && i < MODELS; i++) {
        if (models[i].loaded)
            continue;
        models[i].loaded = true;
        memset(&models[i].kernel, 0, sizeof models[i].kernel);
        if (size >= sizeof models[i].kernel)
            memcpy(&models[i].kernel, data, sizeof models[i].kernel);
        *id = i + 1;
        error = 0;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

ACL_API aclError aclmdlUnload(uint32_t id) {
    SIM_ENTER(aclmdlUnload);
    pthread_mutex_lock(&lock);
    bool valid = id - 1 < MODELS && models[id - 1].loaded;
    if (valid)
        models[id - 1].loaded = false;
    pthread_mutex_unlock(&lock);
    return valid ? 0 : ACL_INVALID_PARAM;
}

static aclError execute(uint32_t id, aclrtStream stream) {
    pthread_mutex_lock(&lock);
    bool valid = id - 1 < MODELS && models[id - 1].loaded;
    struct npu_sim_kernel kernel = valid ? models[id - 1].kernel : (struct npu_sim_kernel){0};
    pthread_mutex_unlock(&lock);
    return valid ? rtKernelLaunch(NULL, 1, &kernel, sizeof kernel, NULL, stream) : ACL_INVALID_PARAM;
}

static aclError execute_and_wait(uint32_t id, aclrtStream stream) {
    aclError error = execute(id, stream);
    return error ? error : rtStreamSynchronize(stream);
}

ACL_API aclError aclmdlExecute(uint32_t id, const void *input, void *output) {
    SIM_ENTER(aclmdlExecute);
    (void)input;
    (void)output;
    return execute_and_wait(id, NULL);
}

ACL_API aclError aclmdlExecuteV2(uint32_t id, const void *input, void *output, aclrtStream stream, const void *config) {
    SIM_ENTER(aclmdlExecuteV2);
    (void)input;
    (void)output;
    (void)config;
    return execute_and_wait(id, stream);
}

ACL_API aclError aclmdlExecuteAsync(uint32_t id, const void *input, void *output, aclrtStream stream) {
    SIM_ENTER(aclmdlExecuteAsync);
    (void)input;
    (void)output;
    return execute(id, stream);
}

ACL_API aclError aclmdlExecuteAsyncV2(uint32_t id, const void *input, void *output, aclrtStream stream,
                                      const void *config) {
    SIM_ENTER(aclmdlExecuteAsyncV2);
    (void)input;
    (void)output;
    (void)config;
    return execute(id, stream);
}
