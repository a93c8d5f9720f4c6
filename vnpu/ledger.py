"""Who holds what: allocations read back from annotations."""
