"""Backups that are taken of a service that runs, restored, and refused if they are damaged; and salvage."""

import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.service.access.keys import KeyRing
from rbmle.service.exports import backup as backups
from rbmle.service.exports.backup import BackupError, back_up, check, restore, salvage
from rbmle.service.exports.checks import check_log
from rbmle.service.log import LOG_FILE, open_log, open_publications
from rbmle.service.log.base import LogDamaged, LogRefused
from rbmle.service.log.publications import FilePublications
from tests.contract.log_server import OnServer
from tests.services import busy, learned, offer, rank, running, small_start


def address(folder: Path) -> str:
    return str(folder / LOG_FILE)


def backed_up(folder: Path, path: Path, url: str | None = None) -> backups.Manifest:
    url = url or address(folder)
    with closing(open_log(url, is_read_only=True)) as log, closing(open_publications(url)) as p:
        return back_up(log, p, folder, path)


def rows_of(url: str) -> list[object]:
    with closing(open_log(url, is_read_only=True)) as log:
        return list(log.read())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the folder of a service that has stopped."""
    folder = tmp_path / "data"
    KeyRing(folder / "keys.json")
    (folder / "sessions-ended").write_text("ended\n")
    with running(small_start(folder)) as service:
        busy(service, 12)
        learned(service)
    return folder


def test_a_restored_service_has_all_and_goes_on(data: Path, tmp_path: Path) -> None:
    path, copy = tmp_path / "a.backup", tmp_path / "copy"
    done = backed_up(data, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert check(path) == done
    assert restore(path, copy) == (done, None)
    assert rows_of(address(copy)) == rows_of(address(data))
    names = ["keys.json", "sessions-ended", *(p.name for p in data.glob("checkpoint-*"))]
    for name in names:
        assert (copy / name).read_bytes() == (data / name).read_bytes()
    for name in backups.PUBLISHED:  # each in a file of its learner's fencing token
        before, after = (FilePublications(folder).newer(name, None) for folder in (data, copy))
        assert before is not None
        assert after is not None
        assert after[1] == before[1]
    assert len(names) > 2
    assert {stat.S_IMODE(p.stat().st_mode) for p in copy.iterdir()} == {0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    with closing(open_log(address(copy), is_read_only=True)) as log:
        assert check_log(log, copy).problems == []
    with running(small_start(copy)) as service:
        assert service.fold.seq >= done.rows
        busy(service, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.backup", "copy", "data"]


def test_a_backup_of_a_service_that_runs_is_a_whole_moment_of_it(tmp_path: Path) -> None:
    data, stopping = tmp_path / "data", threading.Event()
    with running(small_start(data, checkpoint_seconds=0.05)) as service:
        acknowledged: list[str] = []

        def ask() -> None:
            while not stopping.is_set():
                acknowledged.append(rank(service, offer("a", "b")).event)

        client = threading.Thread(target=ask)
        client.start()
        try:
            for number in range(4):
                before = list(acknowledged)
                path, copy = tmp_path / f"{number}.backup", tmp_path / f"copy-{number}"
                done = backed_up(data, path)
                restore(path, copy)
                with closing(open_log(address(copy), is_read_only=True)) as log:
                    assert check_log(log, copy).problems == []
                    assert log.last() == done.rows
                    assert all(log.of_event(event) for event in before)
        finally:
            stopping.set()
            client.join()


def test_a_folder_that_is_there_is_replaced_only_if_told_and_then_moved_aside(
    data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.backup"
    done = backed_up(data, path)
    (data / "serve.toml").write_text("port = 1\n")
    with running(small_start(data)) as service:
        busy(service, 4)
        with pytest.raises(SettingError, match="is not empty; give another folder, or --overwrite"):
            restore(path, data)
        with pytest.raises(SettingError, match="; stop it first"):
            restore(path, data, overwrites=True)
    rows = rows_of(address(data))
    assert len(rows) > done.rows
    _, aside = restore(path, data, overwrites=True)
    assert aside == tmp_path / "data.before-restore"
    assert (aside / "serve.toml").exists()
    assert rows_of(address(aside)) == rows
    assert rows_of(address(data)) == rows[: done.rows]
    with pytest.raises(SettingError, match="is from an earlier restore"):
        restore(path, data, overwrites=True)


def test_a_backup_that_is_damaged_or_cut_leaves_nothing_behind(data: Path, tmp_path: Path) -> None:
    path, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
    done = backed_up(data, path)
    whole = path.read_bytes()
    places = range(3, len(whole), len(whole) // 200)
    damaged = [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in places]
    offset = bytearray(whole)
    offset[-3] ^= 0x10  # of the directory, so that entries seem to begin before the file
    for content in (b"", b"no archive", whole[: len(whole) // 2], whole[:-30], bytes(offset)):
        bad.write_bytes(content)
        for read in (lambda: check(bad), lambda: restore(bad, tmp_path / "copy")):
            with pytest.raises(BackupError, match=r"bad\.backup"):
                read()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["a.backup", "bad.backup", "data"]
    refused = 0
    for content in damaged:
        bad.write_bytes(content)
        try:
            found = check(bad)
        except BackupError:
            refused += 1
        else:
            assert found == done  # what was changed means nothing, as the date of an entry
    assert refused > len(damaged) // 2


def test_an_archive_that_says_less_than_it_has_is_refused(data: Path, tmp_path: Path) -> None:
    path, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
    done = backed_up(data, path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                content = content.replace(b'"rows":%d' % done.rows, b'"rows":%d' % (done.rows - 1))
            target.writestr(name, content)
    with pytest.raises(BackupError, match=f"has {done.rows} rows of the log, but was written with"):
        restore(bad, tmp_path / "copy")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"format":"', b'"format":"other ', "install the version that wrote it"),
        (b'"files/keys.json"', b'"files/../keys.json"', "has a file whose path leaves the folder"),
        (b'"files/keys.json"', b'"files/.bashrc"', "has a file whose path leaves the folder"),
        (b'"sha256":"', b'"sha256":"0', "has a wrong checksum"),
        (b'"origin":"', b'"origin":"x', "differs from the one in the backup"),
    ],
)
def test_an_archive_with_a_manifest_that_was_changed_is_refused(
    data: Path, tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    path, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
    backed_up(data, path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                assert old in content
                content = content.replace(old, new)
            target.writestr(name, content)
    with pytest.raises(BackupError, match=message):
        restore(bad, tmp_path / "copy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.backup", "bad.backup", "data"]


def test_an_archive_of_something_else_is_no_backup(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as target:
        target.writestr("one.txt", "one")
    with pytest.raises(BackupError, match=r"is not a backup of rbmle: it has no manifest\.json"):
        check(tmp_path / "photos.zip")


def test_a_damaged_log_is_not_backed_up_but_salvaged(data: Path, tmp_path: Path) -> None:
    rows = rows_of(address(data))
    KeyRing(data / "keys.json")
    damaged = len(rows) - 10
    with closing(apsw.Connection(address(data))) as connection:
        connection.execute("UPDATE log SET time = time + 1 WHERE seq = ?", (damaged,))
    with pytest.raises(LogDamaged, match=f"row {damaged} of the log is damaged"):
        backed_up(data, tmp_path / "a.backup")
    assert not (tmp_path / "a.backup").exists()
    with closing(open_log(address(data), is_read_only=True)) as log:
        found = salvage(log, data, tmp_path / "saved")
    assert (found.kept, found.lost, found.sound) == (damaged - 1, 11, 10)
    assert rows_of(address(tmp_path / "saved")) == rows[: damaged - 1]
    assert [p.name for p in (tmp_path / "saved").glob("*") if p.name != LOG_FILE] != []
    assert not list((tmp_path / "saved").glob("checkpoint-*"))  # they know more
    assert (tmp_path / "saved" / "keys.json").read_bytes() == (data / "keys.json").read_bytes()
    with running(small_start(tmp_path / "saved")) as service:
        busy(service, 2)


def destroy_page(data: Path, tree: str) -> None:
    """Overwrite a page in the middle of a table or an index with zeros."""
    with closing(apsw.Connection(address(data))) as connection:
        connection.pragma("journal_mode", "delete")
        page_size = int(str(connection.pragma("page_size")))
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        pages = [int(str(page)) for (page,) in connection.execute(query, (tree,))]
    content = bytearray((data / LOG_FILE).read_bytes())
    begin = (pages[len(pages) // 2] - 1) * page_size
    content[begin : begin + page_size] = bytes(page_size)
    (data / LOG_FILE).write_bytes(content)


def test_what_stands_before_a_page_that_cannot_be_read_is_salvaged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(small_start(data)) as service:
        busy(service, 150)
        learned(service)
    rows = rows_of(address(data))
    destroy_page(data, "log")
    with closing(open_log(address(data), is_read_only=True)) as log:
        found = salvage(log, data, tmp_path / "saved")
    assert len(rows) // 3 < found.kept < len(rows)
    assert found.lost == len(rows) - found.kept
    assert rows_of(address(tmp_path / "saved")) == rows[: found.kept]


def test_a_log_with_a_damaged_index_is_salvaged_whole(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(small_start(data)) as service:
        busy(service, 150)
    rows = rows_of(address(data))
    destroy_page(data, "log_event")
    arguments = ["log", "salvage", "--data", str(data), "--out", str(tmp_path / "saved")]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert f"Kept: the records 1 to {len(rows)}" in told.stdout
    assert "Lost: nothing." in told.stdout
    assert rows_of(address(tmp_path / "saved")) == rows
    with closing(open_log(address(tmp_path / "saved"), is_read_only=True)) as log:
        assert log.verify() == []


def test_a_sound_log_needs_no_salvage(data: Path, tmp_path: Path) -> None:
    arguments = ["log", "salvage", "--data", str(data), "--out", str(tmp_path / "saved")]
    told = CliRunner().invoke(app, arguments)
    assert (told.exit_code, "records are sound" in told.stdout) == (0, True)
    assert not (tmp_path / "saved").exists()


def test_the_commands_tell_what_was_kept(data: Path, tmp_path: Path) -> None:
    path, run = tmp_path / "a.backup", CliRunner().invoke
    toml = tmp_path / "serve.toml"
    toml.write_text(f"data = '{data}'\n")
    told = run(app, ["backup", "--config", str(toml), "--out", str(path)])
    assert told.exit_code == 0, told.output
    rows = len(rows_of(address(data)))
    assert f"{rows} records and serve.toml, keys.json, sessions-ended, checkpoint-" in told.stdout
    assert run(app, ["restore", str(path), "--check"]).exit_code == 0
    told = run(app, ["restore", str(path), "--data", str(tmp_path / "copy")])
    assert f"is whole: {rows} records" in told.stdout
    with closing(apsw.Connection(address(data))) as connection:
        connection.execute("DELETE FROM log WHERE seq = 9")
    told = run(app, ["log", "salvage", "--data", str(data), "--out", str(tmp_path / "saved")])
    assert "Damaged: row 9 is missing: row 10 follows row 8." in told.stdout
    assert "Kept: the records 1 to 8, until " in told.stdout
    assert f"Lost: {rows - 8} records" in told.stdout


def test_a_log_in_postgresql_is_backed_up_and_restored_whole_or_not_at_all(
    on_server: OnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, data, path = on_server.url, tmp_path / "data", tmp_path / "a.backup"
    with running(small_start(data, log=url)) as service:
        busy(service, 8)
        learned(service)
    with closing(open_publications(url)) as publications:
        publications.put("model", b"a model")
    done = backed_up(data, path, url)
    rows = rows_of(url)
    assert len(rows) == done.rows
    restore(path, tmp_path / "copy")  # to SQLite
    assert rows_of(address(tmp_path / "copy")) == rows
    with pytest.raises(LogRefused, match=r"there is a log in .* already"):
        restore(path, tmp_path / "there", url)
    with running(small_start(data, log=url)) as service:
        busy(service, 2)
        learned(service)
        with pytest.raises(SettingError, match="; stop it first"):
            restore(path, tmp_path / "there", url, overwrites=True)
    more = rows_of(url)
    assert len(more) > len(rows)

    checked = backups._check_blocks

    def cut(source: Any, entry: Any, name: str, path: Path) -> Iterator[bytes]:
        yield from checked(source, entry, name, path)
        if name == "log.rows":
            raise BackupError("cut")

    with monkeypatch.context() as patched:
        patched.setattr(backups, "_check_blocks", cut)
        with pytest.raises(BackupError, match="cut"):
            restore(path, tmp_path / "there", url, overwrites=True)
    assert rows_of(url) == more
    restore(path, tmp_path / "there", url, overwrites=True)
    assert rows_of(url) == rows
    with closing(open_publications(url)) as publications:
        found = publications.newer("model", None)
        assert found is not None
        assert found[1] == b"a model"
    with running(small_start(tmp_path / "there", log=url)) as service:
        busy(service, 2)
