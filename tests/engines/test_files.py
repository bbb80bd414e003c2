"""Claims are folders, and nothing outside of them can be reached, whatever a path or a link says."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.places import LocalPlace
from torchyard.domain.errors import Invalid, NotFound, TorchyardError, Unavailable
from torchyard.engines.local.engine import LocalEngine

pytestmark = pytest.mark.anyio
part = st.sampled_from(["..", ".", "", "a", "b", "link", "up", "loop", "x" * 300, "\0", "~", "ä", "-rf"])
paths = st.lists(part, max_size=8).map("/".join)


@pytest.fixture
async def engine(here: LocalPlace) -> LocalEngine:
    made = here.engine()
    await made.make_claim("default", "ckpt")
    return made


@pytest.fixture
def claim(here: LocalPlace, engine: LocalEngine) -> Path:
    """A claim with links that lead out of it, beside a file that nobody may reach."""
    folder = here.settings.data / "projects" / "default" / "claims" / "ckpt"
    (folder.parent / "outside").write_text("secret")
    (folder / "a").mkdir()
    (folder / "a" / "b").write_text("inside")
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    (folder / "good").symlink_to("a/b")
    (folder / "broken").symlink_to("nowhere")
    return folder


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


OUT = ["../outside", "a/../../outside", "link", "up", "up/outside", "up/ckpt/../outside", "/up/outside"]


@pytest.mark.parametrize("path", OUT)
async def test_no_way_leads_out(engine: LocalEngine, claim: Path, path: str) -> None:
    with pytest.raises(Invalid):
        await engine.open_file("default", "ckpt", path)
    with pytest.raises(Invalid):
        await engine.list_files("default", "ckpt", path)
    with pytest.raises(Invalid):
        await engine.put_file("default", "ckpt", path, chunks(b"bad"))
    with pytest.raises(Invalid):
        await engine.put_file("default", "ckpt", f"{path}/new", chunks(b"bad"))
    assert (claim.parent / "outside").read_text() == "secret"
    assert sorted(path.name for path in claim.parent.iterdir()) == ["ckpt", "outside"]


async def test_an_absolute_path_begins_at_the_claim(engine: LocalEngine, claim: Path) -> None:
    with pytest.raises(NotFound):
        await engine.open_file("default", "ckpt", "/etc/passwd")
    file = await engine.open_file("default", "ckpt", "/a/b")
    assert file.read() == b"inside"
    file.close()


async def test_a_listing_shows_what_can_be_read(engine: LocalEngine, claim: Path) -> None:
    seen = await engine.list_files("default", "ckpt", "")
    assert [(entry.path, entry.folder, entry.size) for entry in seen] == [("a", True, 0), ("good", False, 6)]


@pytest.mark.parametrize("name", ["link", "up", "loop", "broken"])
async def test_a_link_is_removed_and_not_what_it_means(engine: LocalEngine, claim: Path, name: str) -> None:
    await engine.remove_file("default", "ckpt", name)
    assert not (claim / name).is_symlink()
    assert (claim.parent / "outside").read_text() == "secret"
    assert (claim / "a" / "b").exists()


@pytest.mark.parametrize("path", ["", "/", ".", "a/.."])
async def test_the_claim_itself_is_no_file(engine: LocalEngine, claim: Path, path: str) -> None:
    for attempt in (engine.remove_file, engine.open_file):
        with pytest.raises(Invalid):
            await attempt("default", "ckpt", path)
    with pytest.raises(Invalid):
        await engine.put_file("default", "ckpt", path, chunks(b"x"))
    assert (claim / "a" / "b").exists()


@given(paths)
def test_any_path_is_answered_with_a_sentence(path: str) -> None:
    async def ask(engine: LocalEngine, claim: str) -> None:
        for attempt in (engine.list_files, engine.remove_file):
            try:
                await attempt("default", claim, path)
            except TorchyardError as problem:
                assert problem.message
        try:
            (await engine.open_file("default", claim, path)).close()
        except TorchyardError as problem:
            assert problem.message
        try:
            await engine.put_file("default", claim, path, chunks(b"x"))
        except TorchyardError as problem:
            assert problem.message

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ckpt"
        (folder / "a").mkdir(parents=True)
        (Path(name) / "outside").write_text("secret")
        (folder / "link").symlink_to(Path(name) / "outside")
        (folder / "up").symlink_to("..")
        (folder / "loop").symlink_to("loop")
        asyncio.run(ask(LocalPlace(Path(name) / "place").engine(), str(folder)))
        assert (Path(name) / "outside").read_text() == "secret"
        assert sorted(entry.name for entry in Path(name).iterdir()) == ["ckpt", "outside"]


async def test_an_upload_that_breaks_off_leaves_the_old_file(engine: LocalEngine, claim: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(Unavailable):
        await engine.put_file("default", "ckpt", "a/b", broken())
    assert (claim / "a" / "b").read_text() == "inside"
    assert [path.name for path in (claim / "a").iterdir()] == ["b"]


async def test_a_file_is_no_folder(engine: LocalEngine, claim: Path) -> None:
    with pytest.raises(Invalid):
        await engine.put_file("default", "ckpt", "a/b/c", chunks(b"x"))
    with pytest.raises(Invalid):
        await engine.put_file("default", "ckpt", "a", chunks(b"x"))
    with pytest.raises(Invalid):
        await engine.open_file("default", "ckpt", "a")


async def test_a_folder_in_which_files_come_and_go(engine: LocalEngine, claim: Path) -> None:
    """As a training writes them: a new snapshot under another name, then renamed."""
    done = threading.Event()

    def train() -> None:
        while not done.is_set():
            for number in range(20):
                (claim / f"snapshot.{number}.tmp").write_bytes(b"x")
            for number in range(20):
                (claim / f"snapshot.{number}.tmp").replace(claim / "snapshot.pt")

    training = threading.Thread(target=train)
    training.start()
    try:
        for _ in range(300):
            entries = await engine.list_files("default", "ckpt", "")
            assert {"a", "good"} <= {entry.path for entry in entries}
    finally:
        done.set()
        training.join()


async def test_a_folder_of_this_machine(engine: LocalEngine, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "last.pt").write_bytes(b"12345")
    (entry,) = await engine.list_files("default", str(work), "")
    assert (entry.path, entry.size) == ("last.pt", 5)
    with pytest.raises(Invalid):
        await engine.open_file("default", str(work), "../locks")
    with pytest.raises(NotFound):
        await engine.list_files("default", str(tmp_path / "no-such"), "")
