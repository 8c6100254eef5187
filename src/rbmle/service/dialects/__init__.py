"""Wire formats: bytes to requests, answers to bytes."""
