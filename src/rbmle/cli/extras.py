"""Commands need more than the library: which extra to install when a package is missing."""

import sys
from importlib.util import find_spec

from rbmle.core.errors import SettingError

NEEDED = ("typer", "rich", "msgspec")  # by the command line, before it knows the command

# The packages an extra brings, by the names they are imported under.
EXTRAS = {
    "serve": (
        "apsw",
        "httptools",
        "jinja2",
        "msgspec",
        "prometheus_client",
        "pyarrow",
        "rich",
        "scipy",
        "starlette",
        "structlog",
        "typer",
        "uvicorn",
    ),
    "experiments": (
        "joblib",
        "matplotlib",
        "msgspec",
        "pandas",
        "pyarrow",
        "rich",
        "scipy",
        "sklearn",
        "typer",
    ),
    "postgres": ("psycopg",),
}


def is_installed(package: str) -> bool:
    """Return whether a package can be imported."""
    return find_spec(package) is not None


def advice(package: str) -> str | None:
    """Return what to install to get a package; None if no extra brings it."""
    extras = [f"'rbmle[{name}]'" for name, brought in EXTRAS.items() if package in brought]
    if not extras:
        return None
    return f"{package} is not installed; run pip install {' or '.join(extras)}"


def require(extra: str) -> None:
    """Raise SettingError if a package of an extra is missing."""
    missing = [package for package in EXTRAS[extra] if not is_installed(package)]
    if missing:
        raise SettingError(
            f"this command needs {', '.join(missing)}; run pip install 'rbmle[{extra}]'"
        )


def main_without_commands() -> None:
    """Say what to install, and exit with code 2: the command line itself cannot be imported."""
    missing = next(package for package in NEEDED if not is_installed(package))
    message = (
        advice(missing)
        if missing == "msgspec"
        else "the command line is not installed; run pip install 'rbmle[experiments]' to compare "
        "policies, or pip install 'rbmle[serve]' for the decision service"
    )
    print(f"rbmle: {message}", file=sys.stderr)
    sys.exit(2)
