"""Soft slices of Huawei Ascend NPUs: the knowledge.

Chips and templates, exact quantities, modes, requests, the rules of admission, annotation codecs, fit and plans, and
what a container gets. Standard library only, no clock, no files, no network in the core.
"""
