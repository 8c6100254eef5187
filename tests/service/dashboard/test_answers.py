"""What is sent: headers that bind a browser, names that stay names, files."""

from pathlib import Path

import rbmle
from rbmle.service.dashboard.answers import FOLDER, VENDORED
from tests.service.dashboard.samples import (
    NASTY,
    Fake,
    busy,
    overview_of,
    serving,
    sign_in,
)

VENDORED_FOLDER = Path(rbmle.__file__).parent / VENDORED[1]


def test_every_answer_has_the_headers_that_bind_a_browser() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        for path in ("", "/login", "/static/dashboard.js", "/static/none", "/events"):
            with client.stream("GET", f"/dashboard{path}") as answer:
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                # Forms of a page with no-referrer have the origin null, also to their own site.
                allowed = "same-origin" if path == "" else "no-referrer"
                assert answer.headers["referrer-policy"] == allowed


def test_what_clients_named_is_escaped_everywhere() -> None:
    with serving(Fake(overview_of(busy(), log_unavailable_since=0, log_problem=NASTY))) as client:
        sign_in(client)
        text = client.get("/dashboard", headers={"host": "<script>"}).text
        assert "&lt;script&gt;alert(&#34;1&#34;)" in text
        assert text.count("<script") == 2  # our own two files
        assert 'style="' not in text


def test_the_page_can_be_read_without_a_script() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        text = client.get("/dashboard").text
        for words in (
            "over the baseline action",
            "Why this is not certain yet",
            "Uniform play",
            "Defaulted",
            "NeuralRBMLE-PC",
            "fsync, p99",
        ):
            assert words in text


def test_static_files_are_sent_once() -> None:
    with serving(Fake()) as client:
        names = [path.name for folder in (FOLDER, VENDORED_FOLDER) for path in folder.iterdir()]
        assert {"dashboard.js", "uPlot.iife.min.js"} <= set(names)
        for name in sorted(names):
            answer = client.get(f"/dashboard/static/{name}")
            assert answer.status_code == 200
            again = client.get(
                f"/dashboard/static/{name}", headers={"if-none-match": answer.headers["etag"]}
            )
            assert (again.status_code, again.content) == (304, b"")
        for name in ("", "none.js", "../vendored/README.md", "..%2froutes.py", "../routes.py"):
            assert client.get(f"/dashboard/static/{name}").status_code == 404


def test_the_version_and_licence_of_the_chart_library_are_recorded() -> None:
    version = (VENDORED_FOLDER / "uPlot.iife.min.js").read_text().split("(v")[1].split(")")[0]
    assert f"| {version} |" in (VENDORED_FOLDER / "README.md").read_text()
    assert "The MIT License" in (VENDORED_FOLDER / "uPlot.LICENSE.txt").read_text()
