"""schemathesis on the OpenAPI document of a running service."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.sites import Site

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).with_name("schemathesis.toml")
MISSING = "schemathesis is not installed; `make fuzz` installs it"
ONE_CLIENT = "object_level_authorization"  # a check that asks for two
_CASES = re.compile(r"^\s*(\d+) generated", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What schemathesis says."""

    cases: int
    is_good: bool
    text: str


def is_installed() -> bool:
    """Return whether there is schemathesis."""
    return find_spec("schemathesis") is not None


def examine(site: Site, folder: Path, examples: int, seed: int, *options: str) -> Verdict:
    """Run all phases and checks with some examples for each operation."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(SETTINGS)]
    command += ["run", f"{site.address}/openapi.json"]
    command += ["--checks", "all", "--exclude-checks", ONE_CLIENT, "--max-examples", str(examples)]
    command += ["--seed", str(seed), "--continue-on-failure", "--no-color"]
    command += ["--output-sanitize", "false", "--output-truncate", "false"]
    command += ["--request-timeout", "60"]
    command += ["--header", f"Authorization: Bearer {site.key}", *options]
    known = {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | known,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = _CASES.search(done.stdout)
    return Verdict(int(found[1]) if found else 0, done.returncode == 0, done.stdout)
