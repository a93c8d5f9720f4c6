"""Fit: which cards hold a pod, and why not; plans of many pods; the offline planner."""
