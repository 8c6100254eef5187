"""Who gets into the dashboard, and who does not."""

from pathlib import Path

import pytest

from rbmle.service.dashboard.sign_in import LIFETIME_SECONDS, Sessions
from tests.service.dashboard.samples import KEY, Fake, Keys, serving, sign_in


def test_visitors_are_redirected_to_the_sign_in_page() -> None:
    with serving(Fake()) as client:
        assert client.get("/dashboard").headers["location"] == "/dashboard/login"
        assert "<form" in client.get("/dashboard/login").text
        assert client.get("/dashboard/events").status_code == 401


def test_a_session_cookie_has_all_security_attributes() -> None:
    with serving(Fake()) as client:
        answer = sign_in(client)
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
        _, *flags = answer.headers["set-cookie"].split("; ")
        assert sorted(flags) == ["HttpOnly", "Max-Age=43200", "Path=/dashboard", "SameSite=strict"]
        assert "Average reward" in client.get("/dashboard").text
        assert client.get("/dashboard/login").status_code == 303


def test_over_https_the_cookie_is_for_https_only() -> None:
    with serving(Fake()) as client:
        answer = sign_in(client, headers={"x-forwarded-proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_key_opens_nothing() -> None:
    with serving(Fake()) as client:
        for key in ("wrong", "", "\ud800"):
            answer = sign_in(client, key)
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers
            assert "This key cannot open the dashboard" in answer.text


def test_too_many_wrong_keys_must_wait_but_the_right_one_works() -> None:
    source = Fake()
    with serving(source) as client:
        for _ in range(source.throttle.attempts):
            assert sign_in(client, "wrong").status_code == 401
        answer = sign_in(client, "wrong")
        assert answer.status_code == 429
        wait = int(answer.headers["retry-after"])
        assert f"in {wait} s" in answer.text
        assert sign_in(client).status_code == 303
        source.seconds += wait
        assert sign_in(client, "wrong").status_code == 401


def test_signing_out_ends_the_session_and_not_only_the_cookie() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        cookies = dict(client.cookies)
        answer = client.post("/dashboard/logout")
        assert 'rbmle_session=""' in answer.headers["set-cookie"]
        assert client.get("/dashboard", headers=cookie(cookies)).status_code == 303


def test_a_session_ends_with_its_time_and_with_its_key() -> None:
    source = Fake()
    with serving(source) as client:
        sign_in(client)
        source.seconds += LIFETIME_SECONDS - 1
        assert client.get("/dashboard").status_code == 200
        source.seconds += 1
        assert client.get("/dashboard").status_code == 303
        sign_in(client)
        source.keys = Keys("another-key-than-before")
        assert client.get("/dashboard").status_code == 303


def test_a_session_is_open_at_every_front_end_with_its_key(tmp_path: Path) -> None:
    token = Sessions(tmp_path / "one").open(KEY, 0.0)
    assert Sessions(tmp_path / "another").is_open(token, Keys(KEY), 1.0)
    assert not Sessions(tmp_path / "another").is_open(token, Keys("another-key-than-before"), 1.0)


def test_signing_out_ends_a_session_at_every_front_end_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "ended"
    here, there = Sessions(path), Sessions(path)
    token, other = here.open(KEY, 0.0), here.open(KEY, 0.0)
    assert there.is_open(token, Keys(KEY), 1.0)
    here.close(token, Keys(KEY), 1.0)
    for sessions in (here, there, Sessions(path)):  # the last one as after a restart
        assert not sessions.is_open(token, Keys(KEY), 2.0)
        assert sessions.is_open(other, Keys(KEY), 2.0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_ended_sessions_are_dropped_when_they_expire(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "ended")
    for day in range(5):
        now = day * 24 * 3600.0
        sessions.close(sessions.open(KEY, now), Keys(KEY), now)
    assert len((tmp_path / "ended").read_text().splitlines()) == 1


@pytest.mark.parametrize("place", [0, 2, 8, 20, -1])
def test_a_changed_cookie_is_invalid(place: int) -> None:
    sessions = Sessions()
    token = sessions.open(KEY, 0.0)
    changed = list(token)
    changed[place] = "2" if changed[place] != "2" else "4"
    assert not sessions.is_open("".join(changed), Keys(KEY), 1.0)
    for other in (
        "",
        ".",
        "...",
        "1.9999999999.x.",
        token[:-1],
        token + "=",
        "é" + token,
        "x" * 9999,
    ):
        assert not sessions.is_open(other, Keys(KEY), 1.0)


def test_only_valid_sessions_are_added_to_the_ended_ones(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "ended")
    sessions.close("1.9999999999.x.y", Keys(KEY), 0.0)
    assert not (tmp_path / "ended").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "http://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://here.example", "host": "here.example"}, 303),
        ({}, 303),
    ],
)
def test_forms_of_other_sites_are_refused(headers: dict[str, str], status: int) -> None:
    with serving(Fake()) as client:
        assert sign_in(client, headers=headers).status_code == status
        assert client.post("/dashboard/logout", headers=headers).status_code == status


def test_a_form_over_the_limit_is_refused() -> None:
    with serving(Fake()) as client:
        assert sign_in(client, "x" * 5000).status_code == 413


def test_without_keys_the_dashboard_is_open() -> None:
    with serving(Fake(keys=None)) as client:
        text = client.get("/dashboard").text
        assert "Average reward" in text
        assert "Sign out" not in text
        assert sign_in(client).headers["location"] == "/dashboard"


def cookie(cookies: dict[str, str]) -> dict[str, str]:
    return {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
