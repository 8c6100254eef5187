"""Keys: who may do what, where they are kept, and how one is made new."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

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


def test_each_key_has_its_scope_and_unknown_keys_have_none(tmp_path: Path) -> None:
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


def test_a_read_only_old_file_keeps_its_keys(
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
def test_a_rotated_key_is_valid_at_once_and_the_others_stay_valid(
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


def test_a_first_key_is_the_primary_admin_key_and_stays_out_of_the_file(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json", first=FIRST)
    assert ring.scope_of(FIRST) is Scope.ADMIN
    assert ring.scope_of(load_keys(ring.path).admin.primary) is None
    assert FIRST not in ring.path.read_text()
    ring.rotate(Scope.ADMIN, Place.SECONDARY)
    assert ring.scope_of(FIRST) is Scope.ADMIN
    with pytest.raises(KeysError, match="given at the start"):
        ring.rotate(Scope.ADMIN, Place.PRIMARY)


def test_services_that_are_given_the_same_key_share_all_keys(tmp_path: Path) -> None:
    here, there = (KeyRing(tmp_path / name / "keys.json", first=FIRST) for name in ("a", "b"))
    assert all_of(here.keys) == all_of(there.keys)
    assert len(set(all_of(here.keys))) == 6
    assert all(there.scope_of(key) is here.scope_of(key) for key in all_of(here.keys))
    assert all(len(key) >= 40 for key in all_of(here.keys) if key != FIRST)
    other = KeyRing(tmp_path / "c" / "keys.json", first=FIRST + "!")
    assert not set(all_of(other.keys)) & set(all_of(here.keys))


def test_a_new_first_key_replaces_all_keys_but_the_rotated_ones(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ring = KeyRing(path, first=FIRST)
    ring.rotate(Scope.READ, Place.PRIMARY)
    before = ring.keys
    after = KeyRing(path, first=FIRST + "!")
    kept = set(all_of(before)) & set(all_of(after.keys))
    assert kept == {before.read.primary}
    assert KeyRing(path, first=FIRST + "!").keys == after.keys
    assert ring.scope_of(before.read.secondary) is None  # where it still runs, too


def test_existing_keys_stay_valid_beside_a_first_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    random = KeyRing(path).keys
    given = KeyRing(path, first=FIRST).keys
    assert given == replace(random, given=given.given, admin=replace(random.admin, primary=FIRST))
    assert KeyRing(path).keys == random
    assert load_keys(path) == random


def test_a_key_that_is_printed_works_whether_the_first_key_is_known_or_not(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    for first in (FIRST, None, FIRST):
        ring = KeyRing(path, first=first)
        for known in (FIRST, FIRST + "!", None):
            for scope in Scope:
                assert ring.scope_of(load_keys(path).key(scope, first=known)) is scope
    assert load_keys(path).key(Scope.ADMIN, first=FIRST) == FIRST
    assert load_keys(path).key(Scope.ADMIN, Place.PRIMARY, FIRST) == FIRST
    with pytest.raises(KeysError, match="set the same RBMLE_KEY here"):
        load_keys(path).key(Scope.ADMIN, Place.PRIMARY)


@pytest.mark.parametrize(
    "first",
    ["", "short", "fifteen-letters", "with space in it", "tab\tin-it-somewhere", "ключ" * 5],
)
def test_a_short_or_unprintable_key_is_refused(tmp_path: Path, first: str) -> None:
    with pytest.raises(KeysError, match="at least 16") as caught:
        KeyRing(tmp_path / "keys.json", first=first)
    assert not first or first not in str(caught.value)


def test_no_repr_shows_a_key(tmp_path: Path) -> None:
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
def test_a_file_without_keys_is_refused_without_quoting_it(tmp_path: Path, text: str) -> None:
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


def test_a_damaged_or_deleted_file_changes_nothing_while_the_service_runs(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    key = ring.keys.admin.primary
    ring.path.write_text("{")
    assert ring.scope_of(key) is Scope.ADMIN
    assert ring.scope_of("") is None
    ring.path.unlink()
    assert ring.scope_of(key) is Scope.ADMIN
