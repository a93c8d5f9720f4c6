"""The node: libvnpu.so, the limiter, and what reads and installs them."""
