/* Numbers of CANN that a client meets. */
#ifndef CANN_CODES_H
#define CANN_CODES_H

#include <stdint.h>

/* acl and runtime */
#define ACL_INVALID_PARAM             100000
#define RT_PARAM_INVALID              107000
#define RT_INVALID_DEVICE             107001
#define RT_CONTEXT_NULL               107002
#define RT_STREAM_CONTEXT             107003
#define RT_INVALID_MEMORY_TYPE        107016
#define RT_INVALID_HANDLE             107017
#define RT_WAIT_TIMEOUT               107019
#define RT_SYSPARAM_NOT_SET           107021
#define RT_STREAM_UNJOINED            107025
#define RT_STREAM_CAPTURED            107027
#define RT_EVENT_CAPTURED             107028
#define RT_STREAM_NOT_CAPTURED        107029
#define RT_CAPTURE_MODE_NOT_SUPPORTED 107030
#define RT_FEATURE_NOT_SUPPORTED      207000
#define RT_OUT_OF_MEMORY              207001
#define RT_NO_EVENT                   207007
#define RT_STREAM_NOT_COMPLETE        507004
#define RT_EVENT_NOT_COMPLETE         507006
#define RT_DRIVER_ERROR               507899
#define RT_CAPTURE_INVALIDATED        507903

/* driver */
#define DRV_NO_DEVICE      1
#define DRV_INVALID_DEVICE 2
#define DRV_INVALID_VALUE  3
#define DRV_INVALID_HANDLE 4
#define DRV_OUT_OF_MEMORY  6
#define DRV_NOT_SUPPORTED  0xfffe

/* flag of halMemAlloc */
#define HAL_DEVICE_BITS    0x3ffull
#define HAL_KIND_SHIFT     10
#define HAL_KIND_BITS      0xfull
#define HAL_PHYSICAL_SHIFT 14 /* 0 DDR, 1 HBM */
#define HAL_PAGE_HUGE      (1ull << 17)
#define HAL_PAGE_GIANT     (1ull << 31)
#define HAL_MODULE_SHIFT   56

enum hal_kind {
    HAL_SVM,
    HAL_DEV,
    HAL_HOST,
    HAL_DVPP,
    HAL_HOST_AGENT,
    HAL_RESERVE,
    HAL_HOST_UVA,
    HAL_UVM,
};

enum module { MODULE_HCCL = 3, MODULE_DVPP = 6, MODULE_RUNTIME = 7, MODULE_APP = 33, MODULE_GE = 45 };

/* memory type of rtMalloc: a kind in the low bits, a policy above them */
#define RT_MEMORY_DEFAULT       0x0u
#define RT_MEMORY_HBM           0x2u
#define RT_MEMORY_DDR           0x4u
#define RT_MEMORY_HOST          0x81u
#define RT_MEMORY_HOST_SVM      0x90u
#define RT_MEMORY_KIND_BITS     0x3ffu
#define RT_POLICY_HUGE_FIRST    0x400u
#define RT_POLICY_HUGE_ONLY     0x800u
#define RT_POLICY_NORMAL_ONLY   0x1000u
#define RT_POLICY_HUGE_FIRST_P2 0x2000u
#define RT_POLICY_HUGE_ONLY_P2  0x4000u
#define RT_POLICY_NORMAL_P2     0x8000u
#define RT_POLICY_GIANT_ONLY    0x10000u
#define RT_POLICY_GIANT_P2      0x20000u

/* policy of aclrtMalloc */
enum acl_policy {
    ACL_HUGE_FIRST,
    ACL_HUGE_ONLY,
    ACL_NORMAL_ONLY,
    ACL_HUGE_FIRST_P2P,
    ACL_HUGE_ONLY_P2P,
    ACL_NORMAL_ONLY_P2P,
    ACL_GIANT_ONLY,
    ACL_GIANT_ONLY_P2P,
};

/* The memory type by which the runtime means such a policy. */
static inline unsigned rt_type_of(int policy) {
    static const unsigned types[] = {RT_POLICY_HUGE_FIRST,    RT_POLICY_HUGE_ONLY,    RT_POLICY_NORMAL_ONLY,
                                     RT_POLICY_HUGE_FIRST_P2, RT_POLICY_HUGE_ONLY_P2, RT_POLICY_NORMAL_P2,
                                     RT_POLICY_GIANT_ONLY,    RT_POLICY_GIANT_P2};
    return types[policy & 7];
}

/* location of physical memory */
enum cann_side { SIDE_HOST, SIDE_DEVICE, SIDE_UNREGISTERED, SIDE_MANAGED, SIDE_HOST_NUMA };

/* dim3, which travels by value */
struct cann_dim3 {
    uint32_t x, y, z;
};

/* capture status */
enum cann_capture { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };

#endif
