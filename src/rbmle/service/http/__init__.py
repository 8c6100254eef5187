"""The service behind HTTP: connections, two adapters to the API, pages and metrics."""
