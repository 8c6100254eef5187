"""The dashboard: what the service earns, what it does, and how it is."""
