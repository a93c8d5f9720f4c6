/* Single operators, as libascendcl.so (execute) and libacl_op_compiler.so (compile and execute) offer them: the stream
 * is the last argument of each. */
#include "impl.h"

#define LISTS int inputs, const void *const in_desc[], const void *const in[], int outputs, const void *const out_desc[]

static aclError execute(const void *op, aclrtStream stream) {
    return op ? rtKernelLaunch(NULL, 1, NULL, 0, NULL, stream) : ACL_INVALID_PARAM;
}

#ifdef NPU_SIM_OP_COMPILER

static aclError compile_and_execute(const char *op, LISTS, void *const out[], const void *attributes, int engine,
                                    int flag, const char *path, aclrtStream stream) {
    (void)inputs, (void)in_desc, (void)in, (void)outputs, (void)out_desc, (void)out;
    (void)attributes, (void)engine, (void)flag, (void)path;
    return execute(op, stream);
}

ACL_API aclError aclopCompileAndExecute(const char *op, LISTS, void *const out[], const void *attributes, int engine,
                                        int flag, const char *path, aclrtStream stream) {
    SIM_ENTER(aclopCompileAndExecute);
    return compile_and_execute(op, inputs, in_desc, in, outputs, out_desc, out, attributes, engine, flag, path, stream);
}

ACL_API aclError aclopCompileAndExecuteV2(const char *op, LISTS, void *const out[], void *attributes, int engine,
                                          int flag, const char *path, aclrtStream stream) {
    SIM_ENTER(aclopCompileAndExecuteV2);
    return compile_and_execute(op, inputs, in_desc, in, outputs, out_desc, out, attributes, engine, flag, path, stream);
}

#else

ACL_API aclError aclopExecute(const char *op, LISTS, void *const out[], const void *attributes, aclrtStream stream) {
    SIM_ENTER(aclopExecute);
    (void)inputs, (void)in_desc, (void)in, (void)outputs, (void)out_desc, (void)out, (void)attributes;
    return execute(op, stream);
}

ACL_API aclError aclopExecuteV2(const char *op, LISTS, void *const out[], void *attributes, aclrtStream stream) {
    SIM_ENTER(aclopExecuteV2);
    (void)inputs, (void)in_desc, (void)in, (void)outputs, (void)out_desc, (void)out, (void)attributes;
    return execute(op, stream);
}

ACL_API aclError aclopExecWithHandle(void *handle, int inputs, const void *const in[], int outputs, void *const out[],
                                     aclrtStream stream) {
    SIM_ENTER(aclopExecWithHandle);
    (void)inputs, (void)in, (void)outputs, (void)out;
    return execute(handle, stream);
}

#endif
