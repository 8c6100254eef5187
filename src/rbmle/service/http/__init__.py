"""The service behind HTTP: connections, dialects answered, figures."""
