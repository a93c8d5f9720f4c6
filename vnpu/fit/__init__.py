"""Fit: which cards hold a pod, and why not; plans of many pods; the offline planner."""

from vnpu.fit.answers import NodeRefusal, Placement, Plan, Unplaced
from vnpu.fit.place import place
from vnpu.fit.plan import Workload, plan
from vnpu.fit.policy import Policy
from vnpu.fit.rules import explain, fit

__all__ = ["NodeRefusal", "Placement", "Plan", "Policy", "Unplaced", "Workload", "explain", "fit", "place", "plan"]
