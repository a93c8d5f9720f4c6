"""The rules of admission: from a pod and settings to what is set, what is warned of and what is refused."""

from vnpu.admission.rules import (
    Outcome,
    Set,
    mutate_pod,
    mutate_volcano_job,
    pod_templates,
    validate_pod,
    validate_pod_update,
    validate_workload,
)
from vnpu.admission.settings import Settings, parse_settings

__all__ = [
    "Outcome",
    "Set",
    "Settings",
    "mutate_pod",
    "mutate_volcano_job",
    "parse_settings",
    "pod_templates",
    "validate_pod",
    "validate_pod_update",
    "validate_workload",
]
