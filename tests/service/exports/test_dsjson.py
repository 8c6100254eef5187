"""Lines of DSJSON, as Vowpal Wabbit documents them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rbmle.service.exports.export import export
from rbmle.service.log.records import OfferedAction, Ticked, pack_features
from tests.service.exports.samples import OVER, decided, kept, lines, play, rewarded


def test_a_line_of_dsjson_is_as_vowpal_wabbit_documents_it(tmp_path: Path) -> None:
    log = kept((0, "e", decided()), (5, "e", rewarded(0.5)), (OVER, "", Ticked()))
    assert lines(log, tmp_path) == [
        {
            "_label_cost": -0.5,
            "_label_probability": 0.8,
            "_label_Action": 2,
            "_labelIndex": 1,
            "o": [{"EventId": "e", "v": 0.5}],
            "Timestamp": "2023-11-14T22:13:20.123Z",
            "Version": "1",
            "EventId": "e",
            "a": [2, 1],
            "c": {
                "FromUrl": [{"user": {"age": 31}}],
                "_multi": [
                    {"_tag": "tea", "i": {"constant": 1, "id": "tea"}, "j": [{"price": 2.5}]},
                    {"_tag": "air", "i": {"constant": 1, "id": "air"}, "j": []},
                ],
            },
            "p": [0.8, 0.2],
            "VWState": {"m": "7"},
        }
    ]


def test_a_label_of_dsjson_is_what_was_learned_and_none_if_nothing_was(tmp_path: Path) -> None:
    log = kept(
        (0, "default", decided()),
        (0, "zero", decided()),
        (0, "hidden", decided(deferred=True)),
        (1, "zero", rewarded(0.0)),
        (OVER, "pending", decided()),
    )
    found = {line["EventId"]: line for line in lines(log, tmp_path)}
    assert found["default"]["_label_cost"] == 0.5
    assert str(found["zero"]["_label_cost"]) == "0.0"
    assert {event for event, line in found.items() if "_label_cost" in line} == {"default", "zero"}
    assert {event for event, line in found.items() if "o" in line} == {"zero"}


def test_excluded_actions_are_no_actions_of_dsjson(tmp_path: Path) -> None:
    three = [OfferedAction(id=id) for id in "abc"]
    chosen = play(eligible=[0, 2], probabilities=[0.25, 0.75], chosen=2)
    story = [(0, "e", decided(actions=three, plays=[chosen])), (OVER, "", Ticked())]
    (line,) = lines(kept(*story), tmp_path)
    assert [action["_tag"] for action in line["c"]["_multi"]] == ["a", "c"]
    assert (line["a"], line["p"]) == ([2, 1], [0.75, 0.25])


ODD = [
    {
        "é": {"x": 1, "_tag": "no"},
        "": {"": 2},
        "a b": "c|d:e",
        "ü": [1, 2.5],
        "_label": 1,
        "_multi": [3],
        "null": None,
        "no": False,
        "large": 1e15,
        "line": "a\nb",
    }
]


def test_names_that_vowpal_wabbit_cannot_read_are_changed_or_left_out(tmp_path: Path) -> None:
    log = kept((0, "e", decided(context=pack_features(ODD))), (OVER, "", Ticked()))
    (line,) = lines(log, tmp_path)
    (shared,) = line["c"]["FromUrl"]
    assert shared["né"] == {"x": 1}
    assert (shared["n"], shared["nü"]) == ({"": 2}, [1, 2.5])
    assert set(shared) == {"né", "n", "nü", "a b", "null", "no", "large", "line"}


READS = """
import sys
from vowpalwabbit import Workspace
vw = Workspace(f"--dsjson --cb_explore_adf --strict_parse -d {sys.argv[1]} --no_stdin", enable_logging=True)
vw.finish()
print("".join(vw.get_log()))
"""


def test_vowpal_wabbit_reads_dsjson(tmp_path: Path) -> None:
    python = os.environ.get("RBMLE_VW_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("no vowpalwabbit here: pip install vowpalwabbit, or set RBMLE_VW_PYTHON")
    odd = pack_features(ODD)
    strange = decided(context=odd, actions=[OfferedAction(id='é "|:', features=odd)] * 2)
    plays = [play(slot=slot, features=pack_features([{"width": 3}])) for slot in ("top", "side")]
    log = kept(
        (0, "plain", decided()),
        (0, "odd/é \u2028\"'", strange),
        (0, "slots", decided(plays=plays)),
        (0, "empty", decided(context=[])),
        (0, "hidden", decided(deferred=True)),
        (1, "plain", rewarded(1.0)),
        (2, "slots", rewarded(0.5, "top")),
        (OVER, "", Ticked()),
    )
    export(log, tmp_path / "out.dsjson", "dsjson")
    command = [python, "-c", READS, str(tmp_path / "out.dsjson")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "number of examples = 6" in done.stdout
    assert "error" not in done.stdout.lower()
