"""The scheduler extender: a stock kube-scheduler asks it which nodes hold a pod, and lets it bind."""
