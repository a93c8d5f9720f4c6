"""Every name that the parts of the system share: annotation keys, env names, paths, defaults.

One fact has one home. The same env names and paths stand once more in C, in one header of the interceptor; a test
compares the two. Names that carry ``hami.io`` or no prefix are those of HAMi, Volcano and the device plugin.
"""

from __future__ import annotations

from typing import Final

# ---- Pod annotations that users write

MODE: Final = "huawei.com/vnpu-mode"
SHARE: Final = "huawei.com/vnpu-share"
OUR_ANNOTATIONS: Final = "huawei.com/vnpu-"
"""What every annotation of ours begins with, also those that users do not write."""
NODE_POLICY: Final = "hami.io/node-scheduler-policy"
CARD_POLICY: Final = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS: Final = "hami.io/device-scoring-weights"


def use_uuid(common_word: str) -> str:
    """Pod annotation: only these cards of the chip, a comma list of UUIDs."""
    return f"hami.io/use-{common_word}-uuid"


def no_use_uuid(common_word: str) -> str:
    """Pod annotation: none of these cards of the chip, a comma list of UUIDs."""
    return f"hami.io/no-use-{common_word}-uuid"


# ---- Pod annotations that schedulers and device plugins write: the allocation

ASSIGNED_NODE: Final = "hami.io/vgpu-node"
ASSIGNED_TIME: Final = "hami.io/vgpu-time"
BIND_TIME: Final = "hami.io/bind-time"
BIND_PHASE: Final = "hami.io/bind-phase"
PREDICATE_TIME: Final = "predicate-time"
BIND_PHASE_ALLOCATING: Final = "allocating"
BIND_PHASE_SUCCESS: Final = "success"
BIND_PHASE_FAILED: Final = "failed"
ALLOCATION_PREFIXES: Final = ("hami.io/vgpu-", "hami.io/bind-")
"""Whatever starts like this is an allocation's, also what a scheduler of another version writes."""
DEVICE_TEXT_PREFIX: Final = "hami.io/"
DEVICE_TEXT_MARK: Final = "-devices-"
"""Between prefix and mark of a device text's key stands the chip's common word."""
RUNTIME_INFO_PREFIX: Final = "huawei.com/"


def to_allocate(common_word: str) -> str:
    """Pod annotation: device text that the device plugin consumes container by container."""
    return f"{DEVICE_TEXT_PREFIX}{common_word}{DEVICE_TEXT_MARK}to-allocate"


def allocated(common_word: str) -> str:
    """Pod annotation: the same device text, kept: the ledger."""
    return f"{DEVICE_TEXT_PREFIX}{common_word}{DEVICE_TEXT_MARK}allocated"


def runtime_info(common_word: str) -> str:
    """Pod annotation: the JSON array of UUID, temp, memory and core."""
    return RUNTIME_INFO_PREFIX + common_word


BIND_TICKET: Final = "huawei.com/vnpu-bind-ticket"
"""Pod annotation: in which turn of its node the pod was bound."""
BIND_FENCE: Final = "huawei.com/vnpu-bind-fence"
"""Pod annotation: any change of it makes every binding that is still on its way come too late."""

# ---- Node annotations

SOFT_NODE: Final = "hami-vnpu-core"
NODE_LOCK: Final = "hami.io/mutex.lock"
CORDON: Final = "huawei.com/vnpu-cordon"


def node_register(common_word: str) -> str:
    """Node annotation: the cards of one chip that the device plugin found."""
    return f"hami.io/node-register-{common_word}"


def node_handshake(common_word: str) -> str:
    """Node annotation: the handshake between device plugin and HAMi's scheduler."""
    return f"hami.io/node-handshake-{common_word}"


# ---- Turns: a Lease for each node, held by the pod that is bound there now, or was last

TURN_NAMESPACE: Final = "kube-node-lease"
"""There in every cluster, so that all extenders look at the same Leases, wherever they are installed."""
TURN_LEASE_PREFIX: Final = "vnpu-turn-"
"""Before the node's name: the node's own Lease has that name already."""
TURN_LABEL: Final = "huawei.com/vnpu-turn"

# ---- Resources

RESOURCE_PREFIX: Final = "huawei.com/Ascend"
"""Extended resources that may be chips; those that the device config does not know may be Huawei's own plugin's."""
MEMORY_SUFFIX: Final = "-memory"
CORE_SUFFIX: Final = "-core"
MINDCLUSTER_RESOURCE: Final = "huawei.com/npu-core"
MINDCLUSTER_LABELS: Final = ("ring-controller.atlas", "vnpu-level", "vnpu-dvpp")

# ---- Environment of a container

ENV_MEMORY: Final = "NPU_MEM_QUOTA"
ENV_PRIORITY: Final = "NPU_PRIORITY"
ENV_CEILING: Final = "NPU_FIXED_SHARE_RATIO"
ENV_GLOBAL_SHM: Final = "NPU_GLOBAL_SHM_PATH"
ENV_LOCAL_SHM: Final = "NPU_LOCAL_SHM_PATH"
ENV_ON_TIMEOUT: Final = "VNPU_ON_TIMEOUT"
ENV_REGION: Final = "VNPU_REGION"
"""Where the region is, instead of :data:`REGION_PREFIX`: for tests and nested mount namespaces."""
ENV_LOG: Final = "VNPU_LOG"
ENV_VISIBLE_DEVICES: Final = "ASCEND_VISIBLE_DEVICES"
ENV_RT_VISIBLE_DEVICES: Final = "ASCEND_RT_VISIBLE_DEVICES"
ENV_VNPU_SPECS: Final = "ASCEND_VNPU_SPECS"
RESERVED_ENV_PREFIXES: Final = ("NPU_", "VNPU_")
RESERVED_ENV: Final = frozenset({ENV_VISIBLE_DEVICES, ENV_VNPU_SPECS})

ON_TIMEOUT_EXIT: Final = "exit"
ON_TIMEOUT_DENY: Final = "deny"

# ---- Paths, in the container unless said otherwise

LIMITER: Final = "/usr/local/hami-vnpu-core/limiter"
LIMITER_START: Final = "start"
LIMITER_SLEEP: Final = "--sleep"
LIMITER_LOG_UPSTREAM: Final = "/tmp/limiter_manager.log"  # noqa: S108 - the path that the upstream hook uses
CORE_DIR: Final = "/usr/local/hami-vnpu-core"
"""Host and container: libvnpu.so, limiter, ld.so.preload."""
SHARED_REGION_HOST: Final = "/usr/local/hami-shared-region"
SHARED_REGION_MODE: Final = 0o1777
"""Pods run as many users, and none may take away what another made."""
SHARED_REGION: Final = "/hami-shared-region"
CONTAINERS_HOST: Final = "/usr/local/hami-vnpu-core/containers"
LOCAL_SHM_DIR: Final = "/hami-vnpu-shmem"
LOCAL_SHM: Final = "/hami-vnpu-shmem/vnpu_local_shmem"
LIBRARY_NAME: Final = "libvnpu.so"
LIMITER_NAME: Final = "limiter"
"""Both in each version's directory below :data:`CORE_DIR` on the host."""
PRELOAD_FILE: Final = "/etc/ld.so.preload"
PRELOAD_FILE_NAME: Final = "ld.so.preload"
"""In each version's directory below :data:`CORE_DIR` on the host; mounted at :data:`PRELOAD_FILE`."""
QUOTA_FILE: Final = "/etc/vnpu/quota.json"
QUOTAS_HOST: Final = "/usr/local/hami-vnpu-core/quotas"
"""Host: one quota file for each soft container, out of the reach of its writable mounts."""
REGION_PREFIX: Final = "/dev/shm/vnpu."  # noqa: S108 - the limiter makes it under a name that it owns, without following links
"""Followed by the inode of the container's mount namespace: its region."""
REGISTRY_SUFFIX: Final = ".vnpu_registry"
"""After the number of a card, in the directory of :data:`ENV_GLOBAL_SHM`."""
LIMITER_LOG_PREFIX: Final = "/tmp/vnpu-limiter."  # noqa: S108 - one bounded file for each mount namespace


def global_registry(physical_id: int) -> str:
    """The registry of one card, shared by the containers on it; upstream's layout."""
    return f"{SHARED_REGION}/{physical_id}_global_registry"


def local_shm_host(pod_uid: str, container: str) -> str:
    """Host directory of one container's memory file; the monitor looks below :data:`CONTAINERS_HOST`."""
    return f"{CONTAINERS_HOST}/{pod_uid}_{container}"


def quota_host(pod_uid: str, container: str) -> str:
    """Host file that a container sees at :data:`QUOTA_FILE`."""
    return f"{QUOTAS_HOST}/{pod_uid}_{container}.json"


DRIVER_FILES_HOST: Final = (
    "/usr/local/Ascend/driver/lib64/driver",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)
"""What a container needs of the driver, where its installer puts it."""
NPU_SMI_HOST: Final = ("/usr/local/Ascend/driver/tools/npu-smi", "/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi")
"""Where npu-smi may be, in the order in which it is looked for."""

DCMI_HOST: Final = ("/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so", "libdcmi.so")
"""Where the driver's management library may be, in the order in which it is tried; the last asks the loader."""
NATIVE_DIR: Final = "/usr/local/share/vnpu/native"
"""In the image: ``<machine>/libvnpu.so`` and ``<machine>/limiter``, what the installer puts onto the host."""
CORE_DIR_HAMI: Final = "/hami-vnpu-core"
"""Where containers of HAMi's own device plugin see the host's :data:`CORE_DIR`."""
KUBELET_DEVICE_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
KUBELET_CHECKPOINT: Final = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
"""Kubelet's own note of what device plugins answered; a container that restarts gets the same answer again."""
KUBELET_SOCKET: Final = "kubelet.sock"
KUBELET_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources/kubelet.sock"

# ---- Waiting

WAIT_POLL_MS: Final = 100
WAIT_TOTAL_MS: Final = 60_000
"""How long a process waits for its region at its first NPU call, and how often it looks."""
LIMITER_GONE_MS: Final = 30_000
"""How long a launch waits for a limiter that died."""

# ---- Nodes

LEAST_DRIVER: Final = "25.5"
"""The first driver that lets soft slices share a chip."""
REPORT_S: Final = 30.0
"""How often a device plugin looks at its node object, and answers HAMi's scheduler there."""
HANDSHAKE_STALE_S: Final = 300.0
"""Age at which a device plugin repeats a report that nobody asked for."""
SOFT_SLOTS: Final = 10
"""Slices that a card offers on a soft node, unless the node says otherwise: the device plugin's ``softSlots``."""

# ---- Configuration

DEVICE_CONFIG_KEY: Final = "device-config.yaml"
"""Where the device config stands in the ConfigMap of HAMi's chart."""

EXPORTER_PORT: Final = 9395
"""Where HAMi's monitor of a node listens too."""

# ---- Schedulers

SCHEDULER_DEFAULT: Final = "default-scheduler"
SCHEDULER_VOLCANO: Final = "volcano"
SCHEDULER_HAMI: Final = "hami-scheduler"
VOLCANO_SOFT_SINCE: Final = "1.16"
"""The first Volcano that keeps soft slices to the MiB; older ones round them to a template."""

# ---- Certificates

OWNER_LABEL: Final = "huawei.com/vnpu-owner"
"""Not ``app.kubernetes.io/managed-by``, which Helm sets to its own name on what a chart makes."""
CERTIFICATES_OWNER: Final = "vnpu-certs"
"""The value of :data:`OWNER_LABEL` on the Secret that ``certs`` keeps, and who has written what it writes."""
CERTIFICATES_TYPE: Final = "kubernetes.io/tls"
"""Of that Secret, where it is not there already."""

# ---- Objects of the chart

PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
PART_OF: Final = "vnpu"
"""The value of :data:`PART_OF_LABEL` on every object of the chart, and on its pods."""
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
WEBHOOK_MARK: Final = ".admission.vnpu."
"""In the name of every webhook, between what it does and the domain of whom to ask."""
SETTINGS_KEY: Final = "settings.yaml"
"""Where the settings stand in their ConfigMap."""
SCHEDULER_CONFIGURATION_KEY: Final = "configuration.yaml"
"""Where the configuration of our kube-scheduler stands in its ConfigMap."""
WEBHOOK_IGNORE_LABEL: Final = "hami.io/webhook"
"""On namespaces: with the value ``ignore`` neither HAMi's webhook nor ours looks at them."""
