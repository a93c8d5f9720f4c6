"""The messages of kubelet's APIs, generated from the ``.proto`` files beside them.

After a change of one, in the top directory::

    python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. interceptor/device_plugin/wire/*.proto
"""
