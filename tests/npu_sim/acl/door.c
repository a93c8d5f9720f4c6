/* libacl_rt.so: the doors. */
#include "impl.h"

#define DOOR(name, parameters, arguments)                                                                              \
    ACL_API aclError name parameters {                                                                                 \
        SIM_ENTER(name);                                                                                               \
        return name##Impl arguments;                                                                                   \
    }
ACL_TABLE(DOOR)

ACL_API const char *aclrtGetSocName(void) {
    return aclrtGetSocNameImpl();
}
