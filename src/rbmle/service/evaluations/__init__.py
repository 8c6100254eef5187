"""Evaluations: what policies would have earned on the log, and which features matter, in the background."""
