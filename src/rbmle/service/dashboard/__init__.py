"""A page to look at the service: what it earns, what it does, and how it is."""

from rbmle.service.dashboard.overview import Guard, Overview, Source
from rbmle.service.dashboard.routes import routes

__all__ = ["Guard", "Overview", "Source", "routes"]
