"""The control plane: admission reviews in, answers out."""
