"""Kernels are compiled while the package is installed, so that the first decision need not wait for them.

They go into the wheel, in `rbmle/engine/kernels`, and are used where processor, Python and numba are those of
the build; elsewhere, and in an editable installation, kernels are compiled at their first call. The tag of a
wheel with kernels names the Python and the platform that it was built on. `RBMLE_KERNELS=0` builds one without
kernels, for every platform.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Two processes, for two cores: one plays all policies in their order and one backwards, each with what the
# other has compiled by then.
ORDERS = ("1", "-1")
PLAY = """
import sys
sys.path.insert(0, sys.argv[1])
from rbmle.policies import POLICIES
from rbmle.policies.warming import play
for policy in list(POLICIES.values())[:: int(sys.argv[2])]:
    play(policy())
"""


class Kernels(BuildHookInterface[Any]):
    """Compile the kernels of the policies' defaults into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the files for the wheel; a kernel that cannot be compiled here is left out."""
        self.folder = tempfile.TemporaryDirectory()
        if version == "editable" or os.environ.get("RBMLE_KERNELS") == "0":
            return
        source = str(Path(self.root) / "src")
        environment = os.environ | {"RBMLE_CACHE": self.folder.name, "RBMLE_QUIET": "1"}
        running = [
            subprocess.Popen([sys.executable, "-c", PLAY, source, order], env=environment)
            for order in ORDERS
        ]
        codes = [process.wait() for process in running]
        if any(codes):
            self.app.display_warning(
                "not all kernels were compiled; they will be at their first call"
            )
        for path in Path(self.folder.name).rglob("*.kernel"):
            inside = path.relative_to(self.folder.name)
            build_data["force_include"][str(path)] = f"rbmle/engine/kernels/{inside}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was only made for the wheel."""
        self.folder.cleanup()
