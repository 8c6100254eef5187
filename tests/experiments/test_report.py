"""The report: one page, and names that mean harm stay names."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rbmle.experiments.summary import summarise
from rbmle.experiments.tables import standings
from rbmle.studies.base import PAPER
from tests.browser import CHROMIUM, Browser
from tests.experiments.samples import HOSTILE, fake_summary, page_of, published, run

OVER = "document.querySelector('.u-over').getBoundingClientRect()"


def test_a_report_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    page = page_of(fake_summary(), tmp_path, PAPER)
    assert "http://" not in page
    assert "https://" not in page
    other_pages = re.sub(r'(href="|url\()#', "", page)  # pictures refer to parts of themselves
    assert not re.search(r"\b(src|href)\s*=|@import|url\(", other_pages)
    assert "42 runs on 3 datasets by 7 policies, with 2 seeds each" in page
    assert "paper 2079.5" in page
    assert "NeuralTS(exploration=0.1)" in page
    assert "unit length" in page
    check_nesting(page)
    data = data_of(page)
    assert [len(chart["lines"]) for chart in data["charts"]] == [7, 7, 7]
    assert page.count('<figure class="chart">') == 3


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here; apt install chromium")
def test_a_browser_draws_the_curves_and_follows_the_pointer(
    tmp_path: Path, browser: Browser
) -> None:
    page_of(fake_summary(), tmp_path, PAPER)
    browser.go((tmp_path / "out" / "report.html").as_uri())
    browser.wait("document.querySelectorAll('.plot canvas').length == 3")
    assert inked(browser) > 500
    assert "after round 15,000" in browser.text(".legend p")
    browser.run("document.querySelector('.plot').scrollIntoView()")
    box = browser.run("(({x, y, width, height}) => [x, y, width, height])(" + OVER + ")")
    x, y, width, height = box
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + height / 2)
    browser.wait("!document.querySelector('.legend p').textContent.includes('15,000')")
    browser.run("document.querySelector('.plot').focus()")
    for name in ("Home", "ArrowRight"):
        browser.run(
            f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{name}'}}))"
        )
    assert browser.run("document.querySelector('.plot').getAttribute('aria-valuenow')") != "15000"
    before = inked(browser)
    for _ in range(7):
        browser.run("document.querySelector('.legend button[aria-pressed=true]').click()")
    assert inked(browser) < before
    assert browser.problems() == []


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    summary = summarise([run(HOSTILE, HOSTILE, 0, [1, 2], preprocessing=HOSTILE, settings=HOSTILE)])
    page = page_of(summary, tmp_path, title=HOSTILE)
    assert page.count("</script>") == page.count("<script") == 2
    assert "<img" not in page
    check_nesting(page)
    assert data_of(page)["charts"][0]["lines"][0]["title"] == HOSTILE


def test_a_report_without_runs_says_what_to_do(tmp_path: Path) -> None:
    page = page_of(summarise([]), tmp_path, PAPER)
    assert "There are no runs yet" in page
    assert "store.put(play(trial))" in page
    check_nesting(page)
    assert data_of(page)["charts"] == []


def test_a_report_of_other_data_does_not_speak_of_the_paper(tmp_path: Path) -> None:
    """A user's file has a target; it may bear the name of a published dataset."""
    finals = {"lin-ts": 100.0, "neural-rbmle-ga": 150.0, "lin-ucb": 100.5, "uniform": 3000.0}
    runs = [run("adult", name, 0, [final], target="income") for name, final in finals.items()]
    page = page_of(summarise(runs), tmp_path, PAPER)
    assert "paper" not in page.split("<script")[0].lower()
    assert "Where we lose" not in page
    assert "Which policy is best where" in page
    summary = summarise(runs)
    assert standings(summary, summary.problems) == [
        "Adult: LinTS and LinUCB are best, with mean regrets within 1 % of 100.0; then NeuralRBMLE-GA "
        "(+50 %), Uniform (30 times)."
    ]


def test_a_report_says_how_a_file_was_read(tmp_path: Path) -> None:
    found = run("zoo", "lin-ts", 0, [1], target='["odd')
    found.settings["environment"] |= {"left_out": ["id", "name"], "separator": "semicolons"}
    page = page_of(summarise([found]), tmp_path)
    assert "left_out: id, name; separator: semicolons; target: [&quot;odd" in page


def test_a_report_keeps_published_and_other_data_apart(tmp_path: Path) -> None:
    runs = [run(name, "neural-rbmle-ga", 0, [1]) for name in ("adult", "zoo")]
    page = page_of(summarise(runs), tmp_path, PAPER)
    assert "<li>zoo: NeuralRBMLE-GA is best, with a mean regret of 1.0.</li>" in page
    assert "Where we lose" in page
    assert "zoo: NeuralRBMLE-GA has" not in page
    assert "fewer rounds than in the paper" in page
    assert "against the paper" not in page  # there is no number to compare
    assert "the paper's number" not in page


def test_the_best_policy_is_named_without_published_numbers() -> None:
    summary = summarise([run("zoo", "lin-ts", 0, [0]), run("zoo", "uniform", 0, [3])])
    assert standings(summary, summary.problems) == [
        "zoo: LinTS is best, with a mean regret of 0.0; then Uniform 3.0."
    ]


def test_a_report_says_when_nothing_is_lost(tmp_path: Path) -> None:
    summary = summarise([run("zoo", "neural-rbmle-ga", 0, [1])])
    theirs = published(means={"neural-rbmle-ga": {"zoo": 2.0}})
    page = page_of(summary, tmp_path, theirs)
    assert "Nowhere: NeuralRBMLE-GA is the best" in page
    assert "Nothing: no number that can be compared" in page
    assert "1 run on 1 dataset by 1 policy, with 1 seed each and 1 round." in page


def inked(browser: Browser) -> int:
    """Return how many pixels of the first chart have one of the colours of lines."""
    return int(
        browser.run(
            "(() => { const c = document.querySelector('.plot canvas');"
            " const k = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});"
            " k.drawImage(c, 0, 0); const d = k.getImageData(0, 0, c.width, c.height).data; let n = 0;"
            " for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 200 &&"
            " Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60;"
            " return n; })()"
        )
    )


def data_of(page: str) -> Any:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def check_nesting(page: str) -> None:
    """Raise AssertionError if an element is closed that is not the last one opened."""
    opened: list[str] = []

    class Nesting(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "br"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Nesting().feed(page)
    assert opened == []
