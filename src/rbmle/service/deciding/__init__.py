"""Decisions by the model that is published."""
