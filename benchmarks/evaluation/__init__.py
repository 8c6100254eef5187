"""Whether intervals hold, and how fast logs are judged."""
