"""What the processes of the service do with memory."""

import platform
import subprocess
import sys

import pytest

GROWTH = """
from pathlib import Path
import numpy as np
from rbmle.service.processes import return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

return_freed_memory()
kept = []
np.ones(2**21, np.float32)  # once it is freed, glibc would take such blocks from its heap
before = resident()
for turn in range(5):
    models = []
    for i in range(10):
        models.append(np.ones(2**21, np.float32))
        kept.append(bytes(2**15))  # small, and in use for long
    del models
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_freed_arrays_go_back_to_the_system_though_small_objects_stay() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, check=True)
    assert float(done.stdout) < 10  # MiB; 88 without the threshold
