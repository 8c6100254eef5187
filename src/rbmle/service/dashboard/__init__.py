"""A page to look at the service: what it earns, what it does, and how it is."""

from rbmle.service.dashboard.overview import Backend, Guard, Overview
from rbmle.service.dashboard.routes import routes

__all__ = ["Backend", "Guard", "Overview", "routes"]
