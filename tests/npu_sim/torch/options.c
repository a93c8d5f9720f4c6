/* What torch_npu only looks up by name, but does not do without. */
#include "stub.h"

#include "cann/codes.h"

STUB int aclrtGetSysParamOpt(int option, int64_t *value) {
    (void)option;
    if (!value)
        return ACL_INVALID_PARAM;
    *value = 0;
    return 0;
}

STUB int aclrtSetSysParamOpt(int option, int64_t value) {
    (void)option;
    (void)value;
    return 0;
}

STUB int aclSetCompileopt(int option, const char *value) {
    (void)option;
    return value ? 0 : ACL_INVALID_PARAM;
}

/* Every option is empty. */
STUB size_t aclGetCompileoptSize(int option) {
    (void)option;
    return 1;
}

STUB int aclGetCompileopt(int option, char *value, size_t size) {
    (void)option;
    if (!value || size == 0)
        return ACL_INVALID_PARAM;
    *value = '\0';
    return 0;
}
