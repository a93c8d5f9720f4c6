"""The rules of admission: from a pod and settings to what is set, what is warned of and what is refused."""
