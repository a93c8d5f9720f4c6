"""``kubectl vnpu``: planning, admission, the doctor, who holds what, and why a pod waits."""
