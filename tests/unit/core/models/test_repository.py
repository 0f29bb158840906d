"""Paths and formats: which reads what, what nobody recognises, and one name in two places."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models.repository import Repository
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
    assert refusal(tmp_path / "x") == f"No such file or directory: {tmp_path / 'x'}."


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
