"""Paths and formats: which reads what, what nobody recognises, and one name in two places."""

import asyncio
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.fake_models import no_facts
from tests.harness.virtual_models import make_spec

from trivium.core.models.repository import Repository
from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.types.core_config import CoreConfig
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.sources import ModelSource
from trivium.types.spec import Defaults, InvalidModel, ReadResult


class Named:
    """A format that claims paths which begin with its name, and reads them as it is told to."""

    def __init__(self, name, reading=lambda path: ReadResult(())):
        self.name, self.expects = name, f"a file called {name}"
        self.reading, self.asked = reading, []

    def claims(self, path):
        return path.name.startswith(self.name)

    def read(self, path, defaults):
        self.asked.append((path, defaults))
        return self.reading(path)

    def finish(self, spec, facts):
        return spec


def versions(name, *numbers):
    return lambda path: ReadResult(
        tuple(replace(make_spec(), name=name, version=number, root=path) for number in numbers)
    )


def read(paths, *formats, defaults=Defaults()):  # noqa: B008
    with ThreadPoolExecutor(1) as executor:
        repository = Repository(formats, CoreConfig(defaults=defaults), executor)
        for path in paths:
            path.touch()
            repository.add(path)
        return asyncio.run(repository.read())


def test_the_first_format_that_claims_a_path_reads_it(tmp_path):
    first, second = Named("ab", versions("m", "1", "2")), Named("a", versions("n", "1"))
    paths = [tmp_path / "abc", tmp_path / "ax"]
    defaults = Defaults(queue_items=7)
    found, broken = read(paths, first, second, defaults=defaults)
    assert [(one.name, [spec.version for spec in one.specs], one.form) for one in found] == [
        ("m", ["1", "2"], first),
        ("n", ["1"], second),
    ]
    assert broken == []
    assert (first.asked, second.asked) == ([(paths[0], defaults)], [(paths[1], defaults)])


def test_one_path_may_hold_several_models(tmp_path):
    both = Named(
        "a", lambda path: ReadResult((*versions("m", "1")(path).specs, *versions("n", "1")(path).specs))
    )
    found, _ = read([tmp_path / "a"], both)
    assert [one.name for one in found] == ["m", "n"]


def test_what_a_format_cannot_read_is_passed_on(tmp_path):
    bad = InvalidModel("m", tmp_path, (Finding(Severity.ERROR, "f", 1, "k", "x"),))
    assert read([tmp_path / "a"], Named("a", lambda path: ReadResult((), (bad,)))) == ([], [bad])


def test_a_model_that_another_format_reads_is_told_the_way_out(tmp_path):
    found = Finding(Severity.ERROR, "f", 1, "k", "x")
    inner, other = (
        InvalidModel("m", tmp_path / "a" / "bm", (found,)),
        InvalidModel("n", tmp_path / "a" / "n", (found,)),
    )
    first = Named("a", lambda path: ReadResult((), (inner, other)))
    _, (told, untold) = read([tmp_path / "a"], first, Named("b"))
    assert untold == other
    assert told.findings[0] == found
    assert str(told.findings[1]) == (
        f"{tmp_path}/a/bm: a folder has models of one format (a), and this is one of b. "
        f"Give each as a path of its own: trivium serve {tmp_path}/a/*"
    )


def test_a_second_model_of_one_name_is_refused_and_the_first_stays(tmp_path):
    paths = [tmp_path / "a1", tmp_path / "a2"]
    found, (twice,) = read(paths, Named("a", versions("m", "1")))
    assert [one.specs[0].root for one in found] == [paths[0]]
    assert (twice.name, twice.root) == ("m", paths[1])
    assert str(twice.findings[0]) == (
        f"{paths[1]}: name: a second model named 'm'; expected names that are unique over all paths. "
        f"The first is in {paths[0]}; rename one of them or serve it elsewhere."
    )


def refusal(path):
    repository = Repository((Named("a"), Named("b")), CoreConfig(), None)
    with pytest.raises(ServeError) as caught:
        repository.add(path)
    assert caught.value.code is Code.NOT_FOUND
    return caught.value.message


def test_a_path_that_is_not_there(tmp_path):
    assert refusal(tmp_path / "x") == f"No such file or directory: {tmp_path / 'x'}. Correct the path."


@pytest.mark.parametrize("name", ["x" * 300, "file/x"])
def test_a_path_that_cannot_be(tmp_path, name):
    (tmp_path / "file").touch()
    assert str(tmp_path / name) in refusal(tmp_path / name)


def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    assert refusal(tmp_path) == f"Permission denied: {tmp_path}."


def test_a_path_that_nobody_claims(tmp_path: Path):
    known = "Known formats are: a: a file called a; b: a file called b."
    (tmp_path / "z").mkdir()
    assert (
        refusal(tmp_path / "z")
        == f"Nothing to serve was found in {tmp_path / 'z'}. The folder is empty. {known}"
    )
    for name in "qp":
        (tmp_path / "z" / name).touch()
    assert refusal(tmp_path / "z").startswith(
        f"Nothing to serve was found in {tmp_path / 'z'}. It holds: p, q. "
    )
    assert refusal(tmp_path / "z" / "p") == f"Nothing to serve was found in {tmp_path / 'z' / 'p'}. {known}"


@pytest.mark.parametrize(
    ("installs", "registered", "expected"),
    [(False, False, [False, False]), (True, False, [True, False]), (True, True, [True, True])],
)
def test_packages_of_registered_models_are_a_matter_of_their_own(tmp_path, installs, registered, expected):
    """Also when the paths are read again later."""
    form = Named("a", lambda path: versions(path.name, "1")(path))
    config = CoreConfig(defaults=Defaults(installs=installs), installs_registered=registered)
    paths = [tmp_path / "a-start", tmp_path / "a-registered"]
    for path in paths:
        path.touch()

    async def scene(repository):
        repository.add(paths[0])
        await repository.register(ModelSource(str(paths[1])))
        await repository.read()

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scene(Repository((form,), config, executor)))
    told = [(path, defaults.installs) for path, defaults in form.asked]
    assert told == [(paths[1], expected[1]), *zip(paths, expected, strict=True)]


@pytest.mark.parametrize("link", ["link", "folder"])
def test_what_has_to_lie_in_a_folder_is_not_taken_from_elsewhere_by_a_link(tmp_path, link):
    form = Named("a", lambda path: versions(path.name, "1")(path))
    store, outside = tmp_path / "real", tmp_path / "outside"
    for folder in (store / "in", outside):
        folder.mkdir(parents=True)
        (folder / "a-model").touch()
    (tmp_path / "store").symlink_to(store)  # the folder itself may be one
    (store / "a-near").symlink_to("in/a-model")
    (store / "folder").symlink_to(outside)
    (store / "a-link").symlink_to(outside / "a-model")
    (store / "a-circle").symlink_to("a-circle")
    path = "a-link" if link == "link" else "folder/a-model"

    async def registered(repository, name, within):
        asked = ModelSource(str(tmp_path / "store" / name), within=within)
        return [entry.name for entry in await repository.register(asked)]

    with ThreadPoolExecutor(1) as executor:
        repository = Repository((form,), CoreConfig(), executor)
        within = str(tmp_path / "store")
        for name in ("in/a-model", "a-near"):
            assert asyncio.run(registered(repository, name, within)) == [Path(name).name]
        asked = len(form.asked)
        for name in (path, "../outside/a-model"):
            with pytest.raises(ServeError, match="a link leads out of it") as caught:
                asyncio.run(registered(repository, name, within))
            assert (caught.value.code, "outside/a-model" in caught.value.message) == (
                Code.NOT_FOUND,
                name[0] == ".",
            )
        assert len(form.asked) == asked  # nothing there is looked at
        assert len(repository.sources) == 2
        assert asyncio.run(registered(repository, path, "")) == [Path(path).name]


# -- what is fetched ---------------------------------------------------------------------------------------


class Elsewhere:
    """Fetches what its `fetch` says; the format `a` reads it."""

    def __init__(self, tmp_path, fetch, reading=lambda path: ReadResult(()), form=None):
        self.scratch = tmp_path / "scratch"
        config = CoreConfig(defaults=Defaults(scratch=self.scratch))
        self._threads = ThreadPoolExecutor(1)
        self.repository = Repository((form or Named("a", reading),), config, self._threads, fetch)

    def play(self, scene):
        with self._threads:
            try:
                return asyncio.run(scene(self.repository))
            finally:
                self.repository.close()

    def left(self):
        return list(self.scratch.iterdir()) if self.scratch.exists() else []


def sources(*names):
    return [ModelSource(f"https://there.example/{name}") for name in names]


def brought(uri, into):
    path = into / uri.rpartition("/")[2]
    path.touch()
    return path


def test_all_are_fetched_at_the_same_time_and_stay_in_order(tmp_path):
    together = threading.Barrier(3)

    def fetch(source, into, is_given_up):
        together.wait(60)
        if source.uri.endswith("bad"):
            raise ServeError(Code.NOT_FOUND, "It is not there.")
        return brought(source.uri, into)

    async def scene(repository):
        for source in sources("a1", "bad", "a2"):
            repository.add_remote(source)
        (broken,) = await repository.fetch_all()
        assert (broken.name, broken.findings[0].found) == ("bad", "It is not there.")
        return [source.path.name for source in repository.sources]

    assert Elsewhere(tmp_path, fetch).play(scene) == ["a1", "a2"]


def test_a_fetch_ends_with_the_server(tmp_path):
    begun, ended = threading.Event(), threading.Event()

    def fetch(source, into, is_given_up):
        begun.set()
        while not is_given_up():
            time.sleep(0.001)
        ended.set()
        raise ServeError(Code.LOAD_FAILED, "Nobody waits for it any more.")

    async def scene(repository):
        source, late = sources("a", "b")
        fetching = asyncio.ensure_future(repository.register(source))
        await asyncio.to_thread(begun.wait, 60)
        repository.close()
        with pytest.raises(ServeError, match="Nobody waits"):
            await fetching
        with pytest.raises(ServeError, match="going down"):
            await repository.register(late)

    stage = Elsewhere(tmp_path, fetch)
    stage.play(scene)
    assert ended.is_set()
    assert stage.left() == []


def test_what_comes_after_its_fetch_was_given_up_is_removed(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def fetch(source, into, is_given_up):
        begun.set()
        go_on.wait(60)
        return brought(source.uri, into)

    async def scene(repository):
        fetching = asyncio.ensure_future(repository.register(sources("a")[0]))
        await asyncio.to_thread(begun.wait, 60)
        fetching.cancel()
        await asyncio.wait({fetching})
        go_on.set()
        async with asyncio.timeout(60):
            while stage.left():
                await asyncio.sleep(0)

    stage = Elsewhere(tmp_path, fetch)
    stage.play(scene)


def test_what_cannot_be_read_is_removed_where_nobody_waits(tmp_path, monkeypatch):
    removing, remove = [], shutil.rmtree

    def noted(path, ignore_errors=False):
        removing.append(threading.current_thread())
        remove(path, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", noted)
    bad = InvalidModel("m", tmp_path, (Finding(Severity.ERROR, "f", 1, "k", "x"),))

    async def scene(repository):
        with pytest.raises(ServeError):
            await repository.register(sources("a")[0])
        assert repository.sources == []

    stage = Elsewhere(
        tmp_path, lambda source, into, _: brought(source.uri, into), lambda path: ReadResult((), (bad,))
    )
    stage.play(scene)
    assert stage.left() == []
    assert len(removing) == 1
    assert removing[0] is not threading.main_thread()


def test_a_server_that_closes_gives_up_what_it_fetches(tmp_path):
    begun, ended = threading.Event(), threading.Event()

    def fetch(source, into, is_given_up):
        begun.set()
        while not is_given_up():
            time.sleep(0.001)
        ended.set()
        raise ServeError(Code.LOAD_FAILED, "Nobody waits for it any more.")

    async def scene():
        config = CoreConfig(defaults=Defaults(scratch=tmp_path))
        server = Server([Named("a")], {}, CoreServices(no_facts, fetch=fetch), config)
        server.add(sources("a")[0])
        starting = asyncio.ensure_future(server.start())
        await asyncio.to_thread(begun.wait, 60)
        await server.close()
        await asyncio.wait({starting})
        assert ended.is_set()

    asyncio.run(scene())


def test_formats_are_asked_where_nobody_waits(tmp_path):
    """Of an archive it may be known only by all that is in it whose model it is."""
    asking = []

    class Looks(Named):
        def claims(self, path):
            asking.append(threading.current_thread())
            return super().claims(path)

    (tmp_path / "a").touch()

    async def scene(repository):
        await repository.register(ModelSource(str(tmp_path / "a")))
        with pytest.raises(ServeError, match="No such file"):
            await repository.register(ModelSource(str(tmp_path / "none")))
        assert [source.path.name for source in repository.sources] == ["a"]

    with ThreadPoolExecutor(1) as executor:
        repository = Repository((Looks("a", versions("m", "1")),), CoreConfig(), executor)
        asyncio.run(scene(repository))
        repository.close()
    assert len(asking) == 2
    assert threading.main_thread() not in asking


@pytest.mark.parametrize("refuses", [False, True])
def test_weights_that_files_name_are_fetched_between_two_readings(tmp_path, refuses):
    """Once for a source, and again after a refusal; they go with the source."""
    asked, found = [], []

    def fetch(source, into, _):
        if source.uri.startswith("hf:"):
            asked.append((source.uri, source.is_named, source.with_code))
            if refuses:
                raise ServeError(Code.FORBIDDEN, "Not from there.")
        return brought(source.uri, into)

    class Names(Named):
        def read(self, path, defaults):
            try:
                found.append(defaults.elsewhere("hf://org/model", True))
            except ServeError as error:
                found.append(error.message)
            return ReadResult(())

    async def scene(repository):
        source = sources("a")[0]
        repository.add_remote(source)
        assert await repository.fetch_all() == []
        await repository.read()
        await repository.read()
        return repository.forget(source)

    stage = Elsewhere(tmp_path, fetch, form=Names("a"))
    folders = stage.play(scene)
    once = ("hf://org/model", False, True)
    if refuses:
        assert (asked, found) == ([once] * 2, [None, "Not from there."] * 2)
        assert len(folders) == 1
    else:
        assert asked == [once]
        assert found[0] is None
        assert [place.name for place in found[1:]] == ["model", "model"]
        assert len(folders) == 2
