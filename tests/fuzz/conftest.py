"""What is not collected: hooks are for schemathesis, which may not be installed."""

collect_ignore = ["hooks.py"]
