"""Our own dialect."""
