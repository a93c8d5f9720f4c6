"""``python -m interceptor.exporter``: what the slices of a node are granted and use, for Prometheus.

What a tenant can write counts as its word only: limits come from the pods' annotations, and uses stand beside what the
driver counts itself. A scrape reads; it deletes and changes nothing.
"""
