/* Every env name, path and figure that libvnpu and the limiter read.
 *
 * The same names stand in vnpu/names.py, each without the prefix VNPU_; a test compares the two, line by line. */
#ifndef VNPU_NAMES_H
#define VNPU_NAMES_H

/* Environment of a container. It only seeds the region; afterwards the region rules. */
#define VNPU_ENV_MEMORY          "NPU_MEM_QUOTA"
#define VNPU_ENV_PRIORITY        "NPU_PRIORITY"
#define VNPU_ENV_CEILING         "NPU_FIXED_SHARE_RATIO"
#define VNPU_ENV_GLOBAL_SHM      "NPU_GLOBAL_SHM_PATH"
#define VNPU_ENV_LOCAL_SHM       "NPU_LOCAL_SHM_PATH"
#define VNPU_ENV_VISIBLE_DEVICES "ASCEND_VISIBLE_DEVICES"

/* Environment of a process. */
#define VNPU_ENV_RT_VISIBLE_DEVICES "ASCEND_RT_VISIBLE_DEVICES"
#define VNPU_ENV_ON_TIMEOUT         "VNPU_ON_TIMEOUT"
#define VNPU_ENV_REGION             "VNPU_REGION"
#define VNPU_ENV_LOG                "VNPU_LOG"
#define VNPU_ON_TIMEOUT_EXIT        "exit"
#define VNPU_ON_TIMEOUT_DENY        "deny"

/* Files. A region is REGION_PREFIX followed by the inode of the container's mount namespace. */
#define VNPU_REGION_PREFIX      "/dev/shm/vnpu."
#define VNPU_REGISTRY_SUFFIX    ".vnpu_registry"
#define VNPU_QUOTA_FILE         "/etc/vnpu/quota.json"
#define VNPU_LIMITER_LOG_PREFIX "/tmp/vnpu-limiter."

/* How long a process waits for its region at its first NPU call, and a launch for a limiter that died. */
#define VNPU_WAIT_POLL_MS    100
#define VNPU_WAIT_TOTAL_MS   60000
#define VNPU_LIMITER_GONE_MS 30000

#endif
