"""The words all other folders speak."""
