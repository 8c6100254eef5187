"""Which extra brings a library."""

from importlib.util import find_spec

from rbmle.core.errors import SettingError


def is_there(package: str) -> bool:
    """Say whether a package can be imported."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it stands in sys.modules as missing
        return False


def need(package: str, extra: str, who: str) -> None:
    """Raise SettingError if a package is missing, with what to install."""
    if not is_there(package):
        raise SettingError(
            f"{who} needs {package}, which is not installed; run pip install 'rbmle[{extra}]'"
        )
