"""Everything that a user can name has a page: public names, options, settings, calls, metrics, notices."""

import importlib
import re
import sys

import pytest

import rbmle
from rbmle.service.api.openapi import openapi
from rbmle.service.settings import SETTINGS, FeatureSettings, ServeSettings, ServiceConfiguration
from tests.documentation.pages import PAGES, ROOT, blocks

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
generated = importlib.import_module("generated")  # makes parts of pages from the code
sys.path.pop(0)

REFERENCE = ROOT / "docs" / "reference"
SOURCE = "".join(path.read_text() for path in (ROOT / "src" / "rbmle").rglob("*.py"))
PROSE = "".join(page.read_text() for page in PAGES)


def page(name: str) -> str:
    """Return a page of the reference with its generated parts."""
    return str(generated.expand((REFERENCE / name).read_text()))


def test_every_public_name_has_a_page() -> None:
    pages = [path.name for path in (REFERENCE / "api").glob("*.md")]
    pages.remove(
        "interop.md"
    )  # generated where all adapted libraries are installed, as for the site
    documented = "".join(page(f"api/{name}") for name in pages)
    names = {name for name in rbmle.__all__ if not name.startswith("__")}
    for name in names - {"POLICIES", "classical", "control", "theory"}:
        assert re.search(rf"\brbmle\.{name}$", documented, re.MULTILINE), name
    for module in set(re.findall(r"generated: api (rbmle\.\w+)", PROSE)) - {"rbmle.interop"}:
        public = importlib.import_module(module).__all__
        assert all(f"{module}.{name}" in documented for name in public), module


@pytest.mark.parametrize("name", sorted(rbmle.POLICIES))
def test_every_policy_has_its_settings_on_the_page_of_policies(name: str) -> None:
    assert f"<!-- generated: policy {name} -->" in (REFERENCE / "policies.md").read_text()
    assert f"`{rbmle.POLICIES[name].__name__}`" in page("policies.md")


def test_every_option_of_every_command_is_on_the_page_of_commands() -> None:
    text = page("cli.md")
    for name, command in generated.commands():
        section = text.partition(f"## `{name}`\n")[2].partition("\n## `")[0]
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden and option.name != "help":
                assert all(f"`{each}`" in section for each in option.opts), f"{name} {option.opts}"


def test_every_setting_of_the_service_is_on_its_page() -> None:
    text = page("serve-toml.md")
    names = [*ServeSettings.__struct_fields__, *FeatureSettings.__struct_fields__, *SETTINGS]
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_the_page_of_the_configuration_has_its_defaults() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| `?([^`|]+?)`? \|", page("serve-toml.md"), re.MULTILINE)
    documented, defaults = dict(rows), ServiceConfiguration().to_json()
    assert defaults.keys() <= documented.keys()
    for name, default in defaults.items():
        value = str(default).lower() if isinstance(default, bool) else str(default)
        assert documented[name] == ("–" if default is None else value)


def test_every_call_of_the_service_is_on_its_page() -> None:
    text = page("http-api.md")
    for path, methods in openapi("0")["paths"].items():
        assert all(f"`{method.upper()} {path}`" in text for method in methods), path
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/dashboard"):
        assert f"`GET {path}`" in text


def test_every_metric_and_notice_is_on_its_page() -> None:
    text = (REFERENCE / "metrics.md").read_text()
    named = set(re.findall(r"`(rbmle_\w+)`", text))
    known = set(re.findall(r'(?:MetricFamily\(|yield )?\s*"(rbmle_[a-z_]+)"', SOURCE))
    others = {"rbmle_log_request", "rbmle_session"}  # an advisory lock, a cookie
    others |= {"rbmle_log", "rbmle_base"}  # tables
    for metric in known - others:
        assert metric in named or f"{metric}_total" in named, metric
    for code in re.findall(r'\bcode="([a-z-]+)"', SOURCE):
        assert f"| `{code}` |" in text, code


def test_every_environment_variable_is_on_the_page_of_commands() -> None:
    text = (REFERENCE / "cli.md").read_text()
    assert {f"`{name}`" in text for name in re.findall(r'"(RBMLE_[A-Z]+)"', SOURCE)} == {True}


def test_every_error_is_on_its_page() -> None:
    text = page("errors.md")
    for name in re.findall(r"^class (\w+Error)\(", (SOURCE), re.MULTILINE):
        kind = getattr(importlib.import_module("rbmle.core.errors"), name, None)
        assert kind is None or f"`{name}`" in text, name


def test_extras_are_installed_in_one_form() -> None:
    """A page says `pip install '.[serve]'`, or quotes what a message says."""
    for path in PAGES:
        for block in blocks(path):
            assert "pip install rbmle" not in block.code, path
            assert "pip install 'rbmle" not in block.code, path


def test_the_readme_and_the_changelog_are_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130
    assert len((ROOT / "CHANGELOG.md").read_text().split()) <= 500


def test_the_version_is_the_same_everywhere() -> None:
    assert f'version = "{rbmle.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {rbmle.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {rbmle.__version__} " in (ROOT / "CHANGELOG.md").read_text()
