"""What the service has earned, and what others would have."""
