#ifndef NPU_SIM_ACL_IMPL_H
#define NPU_SIM_ACL_IMPL_H

#include "cann/acl.h"
#include "cann/codes.h"
#include "cann/hal.h"
#include "cann/rt.h"
#include "npu_sim/driver.h"

#define ACL_API __attribute__((visibility("default")))

#define ACL_NEED(function)                                                                                             \
    do {                                                                                                               \
        if (!(function))                                                                                               \
            return RT_FEATURE_NOT_SUPPORTED;                                                                           \
    } while (0)

#endif
