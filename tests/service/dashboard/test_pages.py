"""The dashboard in a real browser."""

import pytest

from rbmle.service.log.records import Play
from rbmle.service.notices import Notice
from rbmle.service.statistics.ranges import MINUTE
from rbmle.service.statistics.summary import Statistics
from tests.browser import CHROMIUM, DESK, PHONE, Browser
from tests.service.dashboard.samples import (
    NASTY,
    Fake,
    Keys,
    Server,
    application,
    busy,
    count,
    decided_of,
    enter,
    overview_of,
    played,
    shown,
)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium here; apt install chromium"
)


@needs_chromium
def test_the_page_draws_charts_and_updates(browser: Browser) -> None:
    source = Fake()
    with shown(browser, source):
        assert browser.run("document.querySelectorAll('canvas').length") == 2
        assert browser.text("[data-text=decisions]") == "300"
        source.shown = overview_of(busy(400))
        browser.wait("document.querySelector('[data-text=decisions]').textContent == '400'")
        assert NASTY in browser.run(
            "[...document.querySelectorAll('th.id .text')].map(e => e.title)"
        )
        assert browser.run("document.querySelectorAll('#main script').length") == 0
        browser.run("document.querySelector('details').open = true")
        browser.wait("document.querySelectorAll('[data-rows=points] tr').length == 7")
        assert browser.problems() == []


@needs_chromium
def test_a_violation_of_the_content_policy_is_detected(browser: Browser) -> None:
    with shown(browser, Fake()):
        browser.run("document.body.setAttribute('style', 'color: red')")
        assert "Content Security Policy" in browser.problems()[0]


@needs_chromium
def test_an_example_request_is_shown_before_the_first_decision(browser: Browser) -> None:
    source = Fake(overview_of(Statistics()))
    with shown(browser, source):
        assert browser.text("h1") == "No decisions yet."
        assert "/v1/rank" in browser.text("pre")
        assert browser.text("pre").startswith("KEY=$(rbmle key --scope decide --data /")
        assert browser.text("form[action$=logout] button") == "Sign out"
        assert browser.is_hidden(".cards")
        source.shown = overview_of(played(3, 3))
        browser.wait("document.querySelectorAll('canvas').length == 2")
        assert browser.is_hidden("pre")
        assert browser.problems() == []


@needs_chromium
def test_a_period_can_be_chosen(browser: Browser) -> None:
    statistics = busy()
    later = statistics.time + 3 * 24 * 3_600_000
    overview = overview_of(statistics, time=later, summary=statistics.summary(later))
    with shown(browser, Fake(overview)):
        assert "over the baseline action" in browser.text("h1")
        assert not browser.is_hidden(".why")
        browser.run("document.querySelector('.ranges a[href$=hour]').click()")
        browser.wait("location.search == '?range=hour' && document.body.dataset.stream == 'live'")
        assert browser.text("h1") == "No decisions in this period."
        assert browser.is_hidden(".cards")
        assert browser.is_hidden("#rewards-chart")  # nothing is waited for
        assert browser.text(".ranges [aria-current]") == "Hour"
        browser.run("document.querySelector('.ranges a[href$=week]').click()")
        browser.wait("document.querySelector('[data-text=decisions]').textContent == '300'")
        assert browser.problems() == []


@needs_chromium
def test_charts_disappear_while_a_period_is_empty(browser: Browser) -> None:
    statistics = busy()
    now = statistics.time + MINUTE
    full = overview_of(statistics, time=now, summary=statistics.summary(now))
    later = now + 3 * 3_600_000
    with shown(browser, source := Fake(full)):
        browser.run("document.querySelector('.ranges a[href$=hour]').click()")
        browser.wait("document.querySelectorAll('canvas').length == 2")
        source.shown = overview_of(statistics, time=later, summary=statistics.summary(later))
        browser.wait("document.querySelector('h1').textContent == 'No decisions in this period.'")
        browser.wait("document.querySelectorAll('#rewards-chart canvas').length == 0")
        source.shown = full
        browser.wait("document.querySelectorAll('canvas').length == 2")
        assert browser.problems() == []


@needs_chromium
def test_the_first_ten_actions_are_all_visible(browser: Browser) -> None:
    statistics = Statistics()
    for number in range(24):
        statistics.decide(0, decided_of(f"a{number:02}"))
    with shown(browser, Fake(overview_of(statistics))):
        rows = "document.querySelector('[data-rows=actions]')"
        assert browser.run(f"{rows}.children.length") == 10
        box = f"{rows}.closest('.panel')"
        bottom = f"{rows}.lastElementChild.getBoundingClientRect().bottom"
        assert browser.run(f"{bottom} <= {box}.getBoundingClientRect().bottom")
        assert browser.run(f"{rows}.closest('.scroll')") is None
        more = "document.querySelector('[data-rows=more_actions]')"
        assert browser.run(f"{more}.closest('details').textContent").startswith("14 more actions")
        browser.run(f"{more}.closest('details').open = true")
        browser.wait(f"{more}.lastElementChild.getBoundingClientRect().height > 0")


@needs_chromium
def test_a_drift_alarm_is_drawn_into_the_chart(browser: Browser) -> None:
    statistics = busy()
    middle = statistics.time - 3 * MINUTE
    source = Fake(overview_of(statistics, resets=1, reset_times=[middle]))
    with shown(browser, source):
        browser.wait("document.querySelectorAll('canvas').length == 2")
        assert "Drift alarms" in browser.text("[data-rows=learning]")
        assert browser.problems() == []


@needs_chromium
def test_any_range_of_dates_can_be_chosen(browser: Browser) -> None:
    statistics = busy()  # of the first of January 1970
    busy_again(statistics, days=3)
    with shown(browser, Fake(overview_of(statistics))):
        browser.wait("document.querySelector('[data-text=decisions]').textContent == '340'")
        fill_in(browser, "1970-01-02", "1970-01-04")
        browser.wait("document.querySelector('[data-text=decisions]').textContent == '40'")
        browser.wait("document.body.dataset.stream == 'live'")
        assert browser.run("location.search") == "?from=1970-01-02&to=1970-01-04"
        assert browser.text("[data-text=dates]").startswith("From 1970-01-02 to 1970-01-04")
        assert browser.run("document.querySelector('input[name=to]').value") == "1970-01-04"
        assert browser.run("document.querySelector('.ranges a[aria-current]')") is None
        fill_in(browser, "1970-01-02", "1970-01-03")
        browser.wait("document.querySelector('h1').textContent == 'No decisions in this period.'")
        assert browser.problems() == []


def fill_in(browser: Browser, first: str, last: str) -> None:
    for name, day in (("from", first), ("to", last)):
        browser.run(f"document.querySelector('input[name={name}]').value = '{day}'")
    browser.run("document.querySelector('.dates').requestSubmit()")


def busy_again(statistics: Statistics, days: int) -> None:
    """Count 40 more decisions, some days later."""
    play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=0)
    for _ in range(40):
        count(statistics, play, 1.0, days * 24 * 60)


@needs_chromium
def test_a_banner_shows_while_the_log_cannot_be_written(browser: Browser) -> None:
    source = Fake(overview_of(busy(), log_unavailable_since=0, log_problem="the disk is full"))
    with shown(browser, source):
        banner = browser.text("[role=alert]")
        assert "has not been writable since 1970-01-01 00:00 UTC" in banner
        assert "the disk is full" in banner
        assert "Free space" in banner
        source.shown = overview_of(busy())
        browser.wait("document.querySelector('[role=alert]').hidden")


@needs_chromium
def test_notices_come_and_go(browser: Browser) -> None:
    losing = Notice(code="losing", level="alarm", title="It loses.", text=NASTY, since=0)
    reset = Notice(code="model-reset", level="info", title="The model was reset.")
    source = Fake(overview_of(busy(), notices=[losing, reset]))
    banners = "[...document.querySelectorAll('#notices .banner')].map(e => e.innerText.trim())"
    with shown(browser, source):
        assert browser.run(banners) == [
            f"It loses. {NASTY} Since 1970-01-01 00:00 UTC.",
            "The model was reset.",
        ]
        source.shown = overview_of(busy(), notices=[reset])
        browser.wait("document.querySelectorAll('#notices .banner').length == 1")
        assert browser.run(banners) == ["The model was reset."]
        assert browser.problems() == []


@needs_chromium
def test_a_lost_stream_is_shown_and_reconnects(browser: Browser) -> None:
    app = application(Fake())
    with Server(app) as server:
        enter(browser, server)
    browser.wait("document.body.dataset.stream == 'lost'")
    told = browser.text("#lost")
    assert "No connection to the service since" in told
    assert "Next attempt in" in told
    with Server(app, server.port):
        browser.wait("document.body.dataset.stream == 'live'")
        assert browser.is_hidden("#lost")


@needs_chromium
def test_the_page_says_when_it_is_signed_out(browser: Browser) -> None:
    source = Fake()
    with shown(browser, source):
        source.keys = Keys("another-key-than-before")
        browser.wait("document.getElementById('lost').textContent.includes('You are signed out')")
        assert not browser.is_hidden("#lost-login")


@needs_chromium
def test_forms_work_without_sec_fetch_site(browser: Browser) -> None:
    with Server(application(Fake())) as server:
        enter(browser, server, host="lan.test")  # neither https nor this machine
        browser.run("document.querySelector('.top form').requestSubmit()")
        browser.wait("location.pathname == '/dashboard/login'")
        assert browser.problems() == []


@needs_chromium
@pytest.mark.parametrize("decisions", [0, 2, 300])
def test_nothing_is_wider_than_the_screen(browser: Browser, decisions: int) -> None:
    problem = {"log_unavailable_since": 0, "log_problem": "x" * 300, "policy": "P" * 100}
    ends = "[...document.querySelectorAll('main *')].map(e => e.getBoundingClientRect().right)"
    with shown(browser, Fake(overview_of(busy(decisions), **problem))):
        for width, is_dark in ((DESK, True), (PHONE, True), (PHONE, False)):
            browser.screen(width, is_dark)
            browser.wait(f"document.documentElement.scrollWidth == {width}")
            browser.wait(f"Math.max(...{ends}) <= {width}")
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(18, 19, 22)" if is_dark else "rgb(246, 246, 243)")
        assert browser.problems() == []
