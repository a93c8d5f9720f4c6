"""``python -m webhook doctor``: a read-only look at a live cluster, and what to do about what it shows.

Checks are pure functions over a :class:`~webhook.doctor.snapshot.Snapshot`; :mod:`webhook.doctor.gather` takes it.
"""
