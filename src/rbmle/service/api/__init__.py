"""What clients can ask, in which dialect, and who may."""
