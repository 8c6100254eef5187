"""Keys that rotate live and are never shown, and the wait of those who guess them."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rbmle.service.access.keys import (
    KeyPair,
    KeyRing,
    Keys,
    KeysError,
    Place,
    Scope,
    load_keys,
    make_keys,
    save_keys,
)
from rbmle.service.access.throttle import Throttle, network_of

FIRST = "a-key-from-the-environment"


def all_of(keys: Keys) -> list[str]:
    return [key for pair in keys.pairs.values() for key in (pair.primary, pair.secondary)]


def test_the_first_start_makes_six_keys_for_the_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ring = KeyRing(tmp_path / "data" / "keys.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE(ring.path.stat().st_mode) == 0o600
    assert [p.name for p in ring.path.parent.iterdir()] == ["keys.json"]
    keys = all_of(ring.keys)
    assert len(set(keys)) == 6
    assert all(len(key) >= 40 for key in keys)


def test_a_restart_finds_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    assert all_of(KeyRing(path).keys) == all_of(KeyRing(path).keys)


def test_each_key_has_its_scope_and_others_none(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    keys = ring.keys
    assert ring.scope_of(keys.admin.primary) is Scope.ADMIN
    assert ring.scope_of(keys.admin.secondary) is Scope.ADMIN
    assert ring.scope_of(keys.read.primary) is Scope.READ
    assert ring.scope_of(keys.read.secondary) is Scope.READ
    assert ring.scope_of(keys.pairs[Scope.DECIDE].primary) is Scope.DECIDE
    assert ring.scope_of(keys.pairs[Scope.DECIDE].secondary) is Scope.DECIDE
    for wrong in (
        "",
        keys.admin.primary[:-1],
        keys.admin.primary + "x",
        "é",
        "\ud800",
        "a" * 10**6,
    ):
        assert ring.scope_of(wrong) is None


def test_only_an_admin_key_may_do_what_others_may() -> None:
    for scope in Scope:
        assert [needed for needed in Scope if scope.covers(needed)] == (
            list(Scope) if scope is Scope.ADMIN else [scope]
        )


def old_file(path: Path) -> list[str]:
    """Write a file as it was before there were decide keys, and return its keys."""
    keys = ["admin-primary-key", "admin-secondary-key", "read-primary-key", "read-secondary-key"]
    pairs = [dict(zip(("primary", "secondary"), keys[i : i + 2], strict=True)) for i in (0, 2)]
    path.write_text(json.dumps({"admin": pairs[0], "read": pairs[1]}))
    path.chmod(0o600)
    return keys


def test_old_keys_keep_their_scope_and_decide_keys_are_added_to_their_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    old = old_file(path)
    ring = KeyRing(path)
    assert [ring.scope_of(key) for key in old] == [Scope.ADMIN] * 2 + [Scope.READ] * 2
    assert len(set(all_of(ring.keys))) == 6
    assert all_of(KeyRing(path).keys) == all_of(ring.keys)


def test_an_old_file_that_cannot_be_written_serves_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, keys: Keys) -> None:
        raise PermissionError(path)

    path = tmp_path / "keys.json"
    old = old_file(path)
    monkeypatch.setattr("rbmle.service.access.keys.save_keys", refuse)
    ring = KeyRing(path, first=FIRST)
    assert ring.scope_of(FIRST) is Scope.ADMIN
    assert [ring.scope_of(key) for key in old] == [None, Scope.ADMIN, Scope.READ, Scope.READ]


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("place", Place)
def test_a_rotated_key_serves_at_once_and_the_others_go_on(
    tmp_path: Path, scope: Scope, place: Place
) -> None:
    serving = KeyRing(tmp_path / "keys.json")
    before = all_of(serving.keys)
    KeyRing(tmp_path / "keys.json").rotate(scope, place)  # by another process
    after = all_of(serving.keys)
    changed = [i for i in range(6) if before[i] != after[i]]
    assert changed == [2 * list(Scope).index(scope) + (place is Place.SECONDARY)]
    assert serving.scope_of(before[changed[0]]) is None
    assert serving.scope_of(after[changed[0]]) is scope
    assert stat.S_IMODE(serving.path.stat().st_mode) == 0o600


def test_the_key_of_the_environment_is_the_first_and_stays_out_of_the_file(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json", first=FIRST)
    assert ring.scope_of(FIRST) is Scope.ADMIN
    assert ring.scope_of(load_keys(ring.path).admin.primary) is None
    assert FIRST not in ring.path.read_text()
    ring.rotate(Scope.ADMIN, Place.SECONDARY)
    assert ring.scope_of(FIRST) is Scope.ADMIN
    with pytest.raises(KeysError, match="given at the start"):
        ring.rotate(Scope.ADMIN, Place.PRIMARY)


@pytest.mark.parametrize(
    "first",
    ["", "short", "fifteen-letters", "with space in it", "tab\tin-it-somewhere", "ключ" * 5],
)
def test_a_key_that_can_be_guessed_or_not_be_sent_is_refused(tmp_path: Path, first: str) -> None:
    with pytest.raises(KeysError, match="at least 16") as caught:
        KeyRing(tmp_path / "keys.json", first=first)
    assert not first or first not in str(caught.value)


def test_no_key_is_ever_shown(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json", first=FIRST)
    shown = f"{ring} {ring!r} {ring.keys} {ring.keys!r} {ring.keys.admin} {[ring.keys]}"
    assert not any(key in shown for key in all_of(ring.keys))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    save_keys(path, make_keys())
    path.chmod(0o640)
    with pytest.raises(KeysError, match="chmod 600"):
        KeyRing(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"admin": null}', "\xff"])
def test_a_file_without_keys_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)
    with pytest.raises(KeysError, match="no keys that can be read") as caught:
        load_keys(path)
    assert caught.value.__cause__ is None


def test_a_file_with_an_empty_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = make_keys()
    save_keys(path, Keys(admin=keys.admin, read=KeyPair(primary="", secondary=keys.read.primary)))
    with pytest.raises(KeysError, match="the primary read key"):
        load_keys(path)


def test_a_spoilt_or_lost_file_changes_nothing_while_the_service_runs(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    key = ring.keys.admin.primary
    ring.path.write_text("{")
    assert ring.scope_of(key) is Scope.ADMIN
    assert ring.scope_of("") is None
    ring.path.unlink()
    assert ring.scope_of(key) is Scope.ADMIN


def test_some_failures_are_free_and_then_one_waits() -> None:
    throttle = Throttle(attempts=3, seconds=60)
    for _ in range(3):
        assert throttle.retry_after("192.0.2.1", 100.0) == 0
        throttle.failed("192.0.2.1", 100.0)
    assert throttle.retry_after("192.0.2.1", 100.0) == 20
    assert throttle.retry_after("192.0.2.1", 110.5) == 10
    assert throttle.retry_after("192.0.2.1", 120.0) == 0
    throttle.failed("192.0.2.1", 120.0)
    assert throttle.retry_after("192.0.2.1", 120.0) == 20
    assert throttle.retry_after("192.0.2.2", 120.0) == 0


def test_failing_while_one_waits_does_not_make_it_longer_than_the_window() -> None:
    throttle = Throttle(attempts=2, seconds=10)
    for _ in range(1000):
        throttle.failed("192.0.2.1", 0.0)
    assert throttle.retry_after("192.0.2.1", 0.0) == 5
    assert throttle.retry_after("192.0.2.1", 5.0) == 0


def test_only_so_many_addresses_are_remembered() -> None:
    throttle = Throttle(attempts=1, seconds=1e6, addresses=100)
    for i in range(10_000):
        throttle.failed(f"10.0.{i // 256}.{i % 256}", float(i))
    assert len(throttle) == 100
    assert throttle.retry_after("10.0.39.15", 10_000.0) > 0  # the last
    assert throttle.retry_after("10.0.0.0", 10_000.0) == 0  # forgotten


def test_one_ipv6_host_has_one_bucket() -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.failed("2001:db8::1", 0.0)
    assert throttle.retry_after("2001:db8::2", 0.0) == 60
    assert throttle.retry_after("2001:db8:0:1::1", 0.0) == 0
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("unix socket") == "unix socket"


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"seconds": 0.0}, {"addresses": 0}])
def test_a_throttle_that_counts_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        Throttle(**wrong)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0)), max_size=50))
def test_no_more_get_through_than_the_bucket_holds(steps: list[tuple[bool, float]]) -> None:
    """Who waits as told fails at most `attempts` times and then once per interval."""
    throttle, now, failures = Throttle(attempts=4, seconds=8.0), 0.0, 0
    for fails, pause in steps:
        now += pause
        if throttle.retry_after("192.0.2.1", now) == 0 and fails:
            throttle.failed("192.0.2.1", now)
            failures += 1
        assert failures <= 4 + now / 2.0 + 1e-6


@given(st.text(), st.floats(0, 1e12))
@example("", 68.92)
def test_any_address_is_counted(address: str, now: float) -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.failed(address, now)
    assert 59 <= throttle.retry_after(address, now) <= 60
