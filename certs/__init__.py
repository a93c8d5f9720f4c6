"""Trust: CA and serving certificates."""
