"""Personalizer's four clients, every call of each, against a running service."""
