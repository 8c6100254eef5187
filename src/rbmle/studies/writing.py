"""How a study writes a file."""

from pathlib import Path


def write(path: Path, text: str) -> Path:
    """Write a text, whole or not at all, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_text(text)
    return scratch.replace(path)
