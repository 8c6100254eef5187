"""What the documentation names is there, and is as it says."""

import re

import pytest

import rbmle
from tests.documentation.pages import PAGES, ROOT


def test_the_docs_state_the_window_of_the_average_as_it_is() -> None:
    window = rbmle.Replay().average
    page = (ROOT / "docs" / "evidence" / "differences.md").read_text()
    assert f"over about the last {100 * window:.0f} % of the rounds" in page
    assert f"In the first {1 / window:.0f} rounds the two are the same" in page


@pytest.mark.parametrize(
    "page",
    ["SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "docs"],
)
def test_every_file_that_the_docs_name_is_there(page: str) -> None:
    """Links, and paths in code spans."""
    pages = PAGES if page == "docs" else [ROOT / page]
    for path in pages:
        text = path.read_text()
        named = re.findall(r"\]\((?!http)([^)#]+)", text)
        missing = [name for name in named if not (path.parent / name).exists()]
        missing += [
            name
            for name in re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/.-]+)`", text)
            if "my_" not in name and not (ROOT / name).exists()
        ]
        assert not missing, f"{path.name} names {missing}"


def test_every_policy_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "policies.md").read_text()
    for name, kind in rbmle.POLICIES.items():
        assert f"`{name}`" in page
        assert f"`{kind.__name__}`" in page


@pytest.mark.parametrize(
    ("page", "folder"),
    [("docs/project/life-of-a-request.md", "service"), ("CONTRIBUTING.md", "")],
)
def test_a_walk_through_the_code_names_what_is_there(page: str, folder: str) -> None:
    text = (ROOT / page).read_text()
    walk = text.partition("## Four walks")[2].partition("\n## ")[0] or text
    files = (ROOT / "src" / "rbmle" / folder).rglob("*.py")
    source = "".join(file.read_text() for file in files)
    names = re.findall(r"`([A-Z]\w+(?:\.\w+)?|[a-z]+_[a-z_]+)`", walk)
    assert len(names) > 9
    for part in {part for name in names for part in name.split(".")}:
        assert re.search(rf"^ *(class|def|async def) {part}\b", source, re.MULTILINE), part
