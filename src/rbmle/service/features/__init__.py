"""From the features of a request to contexts."""
