"""The device plugin: it tells kubelet and the cluster which slices this node offers, and gives containers theirs.

The core takes values and returns values: :mod:`.settings`, :mod:`.inventory` (what is offered), :mod:`.lookup` (whose
turn it is), :mod:`.answer` (what a container gets), :mod:`.report` (what the node object says). Edges: :mod:`.kubelet`
and :mod:`.service` (gRPC), :mod:`.host` (files), :mod:`.pods` (the API server). :mod:`.plugin` puts them together.
"""
