"""Check that the library of an adapter is installed."""

from importlib.util import find_spec

from rbmle.core.errors import SettingError


def is_there(package: str) -> bool:
    """Return whether a package can be imported."""
    try:
        return find_spec(package) is not None
    except ValueError:  # sys.modules marks it as missing
        return False


def need(package: str, extra: str, who: str) -> None:
    """Raise SettingError that says what to install if a package is missing."""
    if not is_there(package):
        raise SettingError(
            f"{who} needs {package}, which is not installed; run pip install 'rbmle[{extra}]'"
        )
