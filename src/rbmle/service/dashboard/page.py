"""The page, whole and readable before any script runs; elements with `data-` names are kept up to date."""

from rbmle.service.dashboard import words
from rbmle.service.dashboard.markup import Html, joined, tag
from rbmle.service.dashboard.page_document import TITLE, document
from rbmle.service.dashboard.page_parts import Column, disclosed, section, table, text
from rbmle.service.dashboard.view import View, points

_ESTIMATES = (
    Column("Policy"),
    Column("Interval", "figure"),
    Column("SNIPS", "number"),
    Column("IPS", "number"),
)
_POINTS = (
    Column("From"),
    Column("As played", "number"),
    Column("Baseline", "number"),
    Column("Uniform", "number"),
    Column("Plays", "number"),
)
_ACTIONS = (
    Column("Action", "id"),
    Column("", "figure"),
    Column("Plays", "number"),
    Column("Share", "number"),
)
_PROPENSITIES = (Column("Probability"), Column("Plays", "number"))
_COUNTS = (Column(""), Column("Count", "number"))
_VALUES = (Column(""), Column("Value", "value"))


def dashboard(view: View, *, address: str, has_keys: bool) -> str:
    """Return the page; the address is where this service was reached."""
    return document(
        TITLE,
        tag(
            "body",
            tag("a", "Skip to the numbers", class_="skip", href="#main"),
            _top(view, has_keys),
            _lost(),
            tag(
                "main",
                _broken_log(view),
                _hero(view),
                _empty(view, address, has_keys),
                _shown(
                    view,
                    "has_decisions",
                    _cards(view),
                    _estimates(view),
                    _chart(view),
                    _plays(view),
                ),
                _details(view),
                id="main",
            ),
            data_stream="waiting",
        ),
        scripts=("uPlot.iife.min.js", "dashboard.js"),
        styles=("uPlot.min.css", "dashboard.css"),
    )


def _top(view: View, has_keys: bool) -> Html:
    return tag(
        "header",
        tag("a", "rbmle", class_="brand", href="/dashboard"),
        text(view, "mode", class_="chip"),
        tag(
            "span",
            tag("span", class_="dot", aria_hidden="true"),
            tag("span", f"As of {words.clock(view.overview.time)}", id="live"),
            class_="live",
            role="status",
        ),
        tag("form", tag("button", "Sign out"), method="post", action="/dashboard/logout")
        if has_keys
        else "",
        class_="top",
    )


def _lost() -> Html:
    return tag(
        "div",
        tag("strong", "", id="lost-what", role="status"),  # the seconds beside it are not read out
        " ",
        tag("span", "", id="lost-next"),
        " ",
        tag("a", "Sign in again", href="/dashboard/login", id="lost-login", hidden=True),
        class_="banner warn",
        id="lost",
        hidden=True,
    )


def _broken_log(view: View) -> Html:
    return _shown(
        view,
        "is_log_broken",
        tag("strong", "The log cannot be written since ", text(view, "log_since"), "."),
        " ",
        text(view, "log_problem"),
        tag(
            "p",
            "Nothing that was acknowledged is lost. Decisions and rewards are refused with 503 until the "
            "log can be written: free space on its disk, or bring back its database. The service then "
            "goes on by itself.",
        ),
        class_="banner bad",
        role="alert",
    )


def _hero(view: View) -> Html:
    return tag(
        "section",
        text(view, "headline", "h1"),
        tag("p", text(view, "verdict"), class_="verdict", id="verdict", data_tone=view.tone),
        class_="hero",
    )


def _empty(view: View, address: str, has_keys: bool) -> Html:
    key = ' \\\n  -H "Authorization: Bearer $RBMLE_KEY"' if has_keys else ""
    rank = '{"context": {"hour": 9}, "actions": [{"id": "news"}, {"id": "sports"}]}'
    return _shown(
        view,
        "is_empty",
        tag("h2", "Try it"),
        tag("p", "Ask which of two actions is best:"),
        tag("pre", f"curl {address}/v1/rank{key} \\\n  -d '{rank}'", tabindex="0"),
        tag("p", "Then tell what it was worth, with the event of the answer in place of EVENT:"),
        tag(
            "pre",
            f"curl {address}/v1/events/EVENT/reward{key} \\\n  -d '{{\"value\": 1}}'",
            tabindex="0",
        ),
        class_="panel",
    )


def _cards(view: View) -> Html:
    return tag(
        "section",
        [
            tag(
                "div",
                tag("h2", tag("span", class_=f"swatch {tone}", aria_hidden="true"), label),
                text(view, name, "p", class_="figure"),
                text(view, f"{name}_note", "p", class_="note"),
                class_="card",
            )
            for label, name, tone in (
                ("Average reward", "played", "played"),
                ("Baseline action", "baseline", "baseline"),
                ("Uniform play", "uniform", "uniform"),
                ("Decisions", "decisions", "none"),
                ("Exploration", "exploration", "none"),
            )
        ],
        class_="cards",
        aria_label="The most important numbers",
    )


def _estimates(view: View) -> Html:
    return section(
        "Against other policies",
        "What others would have earned with the same visitors, estimated from the probabilities with "
        "which actions were chosen; 95 % intervals. The drawing shows SNIPS.",
        tag(
            "div",
            table("estimates", view.tables["estimates"], _ESTIMATES, class_="estimates"),
            tag("p", text(view, "range_low"), text(view, "range_high"), class_="range"),
            class_="with-range",
        ),
    )


def _chart(view: View) -> Html:
    return section(
        "Reward over time",
        joined(
            "Averages over the last ",
            text(view, "window"),
            ", in UTC; baseline and uniform by SNIPS.",
        ),
        tag(
            "div",
            tag("p", "Waiting for the first numbers…", class_="waiting"),
            id="rewards-chart",
            class_="chart",
            role="img",
            aria_label="Lines of the average reward as played, of the baseline and of uniform play",
        ),
        tag("h3", "Plays a minute"),
        tag(
            "div",
            id="plays-chart",
            class_="chart small",
            role="img",
            aria_label="Bars of the number of plays a minute",
        ),
        tag(
            "noscript",
            tag("p", "Charts need JavaScript; the table has the same numbers.", class_="note"),
        ),
        disclosed("Numbers of the charts", table("points", points(view.overview.summary), _POINTS)),
    )


def _plays(view: View) -> Html:
    return tag(
        "div",
        section(
            "Actions",
            "How often each one was shown; the 50 most frequent.",
            tag(
                "div",
                table("actions", view.tables["actions"], _ACTIONS, class_="actions"),
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label="Plays of each action",
            ),
            text(view, "others", "p", class_="note"),
        ),
        section(
            "Probability of what was shown",
            "How sure the policy was; low ones are exploration.",
            _histogram(view),
            disclosed(
                "Numbers of the histogram",
                table("propensities", view.tables["propensities"], _PROPENSITIES),
            ),
        ),
        class_="columns two",
    )


def _histogram(view: View) -> Html:
    width = 100 / max(len(view.bars), 1)
    return tag(
        "div",
        tag(
            "svg",
            [
                tag(
                    "rect",
                    x=f"{place * width + width / 10:.2f}%",
                    y=f"{100 - height:.2f}%",
                    width=f"{width * 0.8:.2f}%",
                    height=f"{height:.2f}%",
                )
                for place, height in enumerate(view.bars)
            ],
            id="histogram",
            role="img",
            aria_label="Histogram of the probability with which the shown action was chosen",
        ),
        tag("p", tag("span", "0"), tag("span", "0.5"), tag("span", "1"), class_="range"),
        class_="histogram",
    )


def _details(view: View) -> Html:
    return tag(
        "div",
        section("Rewards", "", table("rewards", view.tables["rewards"], _COUNTS)),
        tag(
            "div",
            section("Learning", "", table("learning", view.tables["learning"], _VALUES)),
            section("Requests", "", table("requests", view.tables["requests"], _COUNTS)),
        ),
        tag(
            "div",
            section("Service", "", table("service", view.tables["service"], _VALUES)),
            section("Errors", "", table("errors", view.tables["errors"], _COUNTS)),
        ),
        class_="columns three",
    )


def _shown(
    view: View, flag: str, *children: str, class_: str = "", role: str | None = None
) -> Html:
    """Return what is to be seen only while a flag is set."""
    return tag(
        "div",
        children,
        class_=class_ or None,
        role=role,
        data_show=flag,
        hidden=not view.flags[flag],
    )
