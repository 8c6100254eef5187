"""The decision service: a bandit behind HTTP, and a durable log of all it decided and was told."""
