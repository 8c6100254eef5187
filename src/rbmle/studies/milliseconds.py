"""How times are written in tables."""


def milliseconds(seconds: float | None) -> str:
    """Return seconds as whole milliseconds, or with three digits if they are few; a dash for None.

    >>> milliseconds(0.0017), milliseconds(0.0123456), milliseconds(9.9027), milliseconds(None)
    ('1.70', '12.3', '9,903', '–')
    """
    if seconds is None:
        return "–"
    ms = 1e3 * seconds
    return f"{ms:,.0f}" if ms >= 99.5 else f"{ms:#.3g}"
