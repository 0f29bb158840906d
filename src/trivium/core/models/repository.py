"""The paths that a server was given, and what is in them: which format reads each, who holds which model."""

import asyncio
import itertools
import shutil
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from trivium.core.graph.policy import circle, circular, members, waves
from trivium.core.models import trust_policy, version_policy
from trivium.core.models.claims import FormatClaims
from trivium.core.models.source_policy import applied, with_fit_names
from trivium.core.models.sources import MemberSources, Source, fetched_for
from trivium.files import lies_within
from trivium.types.core_config import CoreConfig
from trivium.types.errors import Code, ConfigError, ServeError, anew, frameless, said_by
from trivium.types.fetching import FetchModel
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import Format, SupportsMembers, SupportsOverride, SupportsSource
from trivium.types.operations import Load
from trivium.types.sources import ModelSource, Place
from trivium.types.spec import InvalidModel, ModelSpec, ReadResult

READ_SECONDS = 120.0
"""In which the models of one path must have been read, unpacking included: a network share may hang for ever."""

FETCHES_AT_ONCE = 16
"""In threads of their own: a server that hardly answers holds up nothing but fetches, and of these its own share."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model as read: all its versions, the format to finish them by, and what asked for each of them. `is_member`:
    a graph brings it.
    """

    name: str
    specs: tuple[ModelSpec, ...]
    form: Format
    asked: Mapping[str, ModelSource] = field(default_factory=dict)
    is_member: bool = False

    @property
    def wanted(self) -> tuple[ModelSpec, ...]:
        """The versions that its policy picks."""
        versions = version_policy.wanted([spec.version for spec in self.specs], self.specs[0].version_policy)
        return tuple(spec for spec in self.specs if spec.version in versions)

    @property
    def needs(self) -> frozenset[str]:
        """The models that a graph runs; none for a model of its own."""
        return frozenset(name for spec in self.specs for name in members(spec))


def no_fetch(source: ModelSource, into: Path, is_given_up: Callable[[], bool]) -> Path:
    """Refuse to fetch anything."""
    raise ServeError(
        Code.UNSUPPORTED,
        f"{source.uri}: this server was built without a way to fetch models. Download it, and name its folder or "
        "archive.",
    )


class Repository:
    """Reads its sources anew each time it is asked. What lies elsewhere is fetched once, by `fetch`."""

    def __init__(
        self,
        formats: Sequence[Format],
        config: CoreConfig,
        executor: Executor,
        fetch: FetchModel = no_fetch,
    ) -> None:
        self._claims = FormatClaims(formats)
        self._executor = executor
        self.defaults = config.defaults
        installs = config.defaults.installs and config.installs_registered
        self._registered_defaults = replace(config.defaults, installs=installs)
        self._unique_names = config.unique_names
        self.sources: list[Source] = []
        self._fetch = fetch
        self._fetching = ThreadPoolExecutor(FETCHES_AT_ONCE, thread_name_prefix="trivium-fetch")
        self._is_closed = threading.Event()
        self._elsewhere: list[ModelSource] = []
        self._members = MemberSources()
        self._numbers = itertools.count(1)

    def add_remote(self, source: ModelSource) -> None:
        """Fetch it with the others, by `fetch_all`."""
        self._elsewhere.append(source)

    async def fetch_all(self) -> list[InvalidModel]:
        """Fetch what lies elsewhere and was added so far, all at the same time; returns what could not be."""
        sources, self._elsewhere = self._elsewhere, []
        fetched = await asyncio.gather(*map(self._fetched_or_not, sources))
        self.sources += [one for one in fetched if isinstance(one, Source)]
        return [one for one in fetched if isinstance(one, InvalidModel)]

    async def _fetched_or_not(self, source: ModelSource) -> Source | InvalidModel:
        try:
            return await self._fetched(source)
        except ServeError as error:
            return _unfetched(source, frameless(error))

    def close(self) -> None:
        """Give up what is being fetched, and let its threads go."""
        self._is_closed.set()
        self._fetching.shutdown(wait=False, cancel_futures=True)

    def take(self, place: Place, form: Format | None = None, asked: ModelSource | None = None) -> None:
        """Add a path, also one with a name for its model, or a source to fetch. Raises as `add`."""
        if isinstance(place, Path):
            self.add(place, form, asked)
        elif place.is_remote:
            self.add_remote(place)
        else:
            self.add(Path(place.uri), form, place)

    def add(self, path: Path, form: Format | None = None, asked: ModelSource | None = None) -> None:
        """Read it as the format that is given, whatever is in it now, else as the first that claims it, and with what
        is `asked` of it. Raises NOT_FOUND for a path that cannot be opened or that no format knows.
        """
        self.sources.append(Source(path, form or self._claims.of(path), asked))

    async def _claimed(self, path: Path, within: str = "") -> Format:
        """Find the format where nobody waits: of an archive it may be known only by all that is in it. NOT_FOUND, too,
        for what does not lie `within` a folder.
        """

        def claiming() -> Format:
            _check_within(path, within)
            return self._claims.of(path)

        try:
            async with asyncio.timeout(READ_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._executor, claiming)
        except TimeoutError as error:
            raise ConfigError(_unread(path).findings) from error

    async def _fetched(self, source: ModelSource) -> Source:
        """Fetch a source and find its format."""
        path, folder = await self._brought(source)
        try:
            return Source(path, await self._claimed(path), source, fetched=folder)
        except ServeError as error:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise ServeError(error.code, _renamed(error.message, path, source)) from error

    async def _brought(self, source: ModelSource) -> tuple[Path, Path]:
        """Fetch a source into a folder of its own, which is removed where that fails, or is cancelled. Returns its path
        and that folder.
        """
        if self.defaults.scratch is None:
            words = f"{source.uri} cannot be fetched: there is no scratch folder to fetch it into."
            raise ServeError(Code.UNSUPPORTED, f"{words} Download it, and name its folder or archive.")
        if self._is_closed.is_set():
            raise ServeError(
                Code.DRAINING, f"The server is going down and does not fetch {source.uri} any more."
            )
        folder = self.defaults.scratch / f"fetched-{next(self._numbers)}"
        into, is_cancelled = folder / "files", threading.Event()

        def fetch() -> Path:
            try:
                into.mkdir(parents=True, mode=0o700)
                return self._fetch(source, into, lambda: is_cancelled.is_set() or self._is_closed.is_set())
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise

        running = self._fetching.submit(fetch)
        try:
            path = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            is_cancelled.set()
            running.add_done_callback(partial(_remove_late, folder))
            raise
        return path, folder

    async def register(self, source: ModelSource) -> list[ModelEntry]:
        """Read what a source asks for, and keep it among those that are read from now on. Raises NOT_FOUND as `add`;
        ConfigError with everything that is wrong, and then nothing is kept.
        """
        trust_policy.check_source(source)
        path = Path(source.uri)
        found = (
            await self._fetched(source)
            if source.is_remote
            else Source(path, await self._claimed(path, source.within), source)
        )
        kept = replace(found, is_registered=True)
        self.sources.append(kept)  # now: the list may have become another one meanwhile
        try:
            entries = await self._entries(kept)
        except BaseException:
            for folder in self.forget(source):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        return [entry for wave in loading_order(entries) for entry in wave]

    async def _entries(self, kept: Source) -> list[ModelEntry]:
        """Return the models of a source, with those that they bring. Raises what is wrong with any of them."""
        found: dict[str, ModelEntry] = {}
        for source, reading in await self._readings(kept):
            if isinstance(reading, ServeError):
                raise anew(reading)
            for invalid in reading.unreadable:
                raise ConfigError(invalid.findings)
            names = dict.fromkeys(spec.name for spec in reading.specs)
            if not names:
                raise ServeError(Code.NOT_FOUND, self._claims.unclaimed(source.path))
            for name in names:
                entry = _entry(name, reading, source)
                if name in found and found[name].asked != entry.asked:
                    raise ConfigError(_twice(entry.specs[0], found[name].specs[0]).findings)
                found[name] = entry
        return list(found.values())

    async def _readings(self, source: Source) -> "list[tuple[Source, ReadResult | ServeError]]":
        """Return what a source holds and, behind it, what its models bring, or why that cannot be had."""
        found: list[tuple[Source, ReadResult | ServeError]] = []
        waiting = [source]
        while waiting:
            owner = waiting.pop(0)
            reading = await self._read(owner)
            found.append((owner, reading))
            form = owner.form
            brought = [asked for spec in reading.specs for asked in _members_of(form, spec)]
            for asked in brought:
                known = [one for one, _ in found if one.asked == asked] + [
                    one for one in waiting if one.asked == asked
                ]
                try:
                    member = await self._member(asked, owner)
                except ServeError as error:
                    found.append((Source(Path(asked.uri), form, asked, is_member=True), frameless(error)))
                else:
                    waiting += [] if known else [member]
        return found

    async def _member(self, asked: ModelSource, owner: Source) -> Source:
        """Return the source of a member, which is fetched once if it lies elsewhere. Raises as `add` and `register`."""
        member = self._members.find(asked, owner)
        if member is None:
            if owner.is_registered:
                trust_policy.check_source(asked)
            if asked.is_remote:
                member = await self._fetched(asked)
            else:
                path = Path(asked.uri)
                member = Source(path, self._claims.of(path), asked)
            member = replace(member, is_registered=owner.is_registered, is_member=True)
            self._members.add(member, owner)
        return member

    async def found(self, place: Place) -> Source:
        """Return the source that a place is, fetched if it lies elsewhere; it is not read. Raises as `add`."""
        if isinstance(place, ModelSource):
            return await self._fetched(place)
        return Source(place, await self._claimed(place))

    def forget(self, source: ModelSource) -> list[Path]:
        """Read a registered source no more, nor what it alone brought; returns the folders that they were fetched into,
        which are the caller's now.
        """
        gone = [one for one in self.sources if one.asked is source]
        self.sources = [one for one in self.sources if one.asked is not source]
        gone += self._members.release(source)
        return fetched_for(gone)

    async def read(self) -> tuple[list[ModelEntry], list[InvalidModel]]:
        """Every model of every source; one whose name another source has already is unreadable, unless both were asked
        for with versions that differ, with `unique_names` the first one, too.
        """
        found: dict[str, ModelEntry] = {}
        broken: list[InvalidModel] = []
        readings = [one for source in self.sources for one in await self._readings(source)]
        for source, reading in readings:
            if isinstance(reading, ServeError):
                assert source.asked is not None, "members are asked for"
                broken.append(_unfetched(source.asked, reading))
                continue
            broken.extend(reading.unreadable)
            for name in dict.fromkeys(spec.name for spec in reading.specs):
                entry = _entry(name, reading, source)
                if source.is_member and name in found and found[name].asked == entry.asked:
                    continue  # several graphs bring it
                joined = _joined(found.get(name), entry)
                if joined is None:
                    broken.append(_twice(entry.specs[0], found[name].specs[0]))
                else:
                    found[name] = joined
        if self._unique_names:
            for name in {unreadable.name for unreadable in broken}:
                found.pop(name, None)
        return _without_circles(found, broken), broken

    async def read_overridden(self, load: Load, into: Path) -> ModelEntry:
        """The model that `load` describes, laid out in the folder `into`, which is made. Of several sources whose
        format can do this, the one counts that has the model, or the first. LOAD_FAILED where there is no room.
        """
        sources = [source for source in self.sources if isinstance(source.form, SupportsOverride)]
        holders = [source for source in sources if (source.path / load.model).exists()]
        source = next(iter((*holders, *sources)), None)
        if source is None or not isinstance(source.form, SupportsOverride):
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{load.model}' can be loaded as it is only: no format of the paths served takes a "
                "configuration or files in place of the model's own. Change its folder and load it without.",
            )
        form, loop = source.form, asyncio.get_running_loop()

        def lay_out() -> Path:
            try:
                into.mkdir(parents=True)
                return form.override(load, source.path, into)
            except Exception as error:  # what has been written takes up room, and is of no use
                shutil.rmtree(into, ignore_errors=True)
                if not isinstance(error, OSError):
                    raise
                raise ServeError(
                    Code.LOAD_FAILED,
                    f"What was sent for model '{load.model}' cannot be written: {said_by(error)}. Make room "
                    "in its scratch folder, or have the server keep its temporary files elsewhere (TMPDIR), and load "
                    "again.",
                ) from error

        path = await loop.run_in_executor(self._executor, lay_out)
        reading = await self._read(Source(path, source.form, is_registered=True))
        for unreadable in reading.unreadable:
            raise ConfigError(unreadable.findings)
        trust_policy.check_sent(reading.specs, {} if load.files else await self._own_parameters(load, source))
        return ModelEntry(load.model, reading.specs, source.form)

    async def _own_parameters(self, load: Load, source: Source) -> Mapping[str, Mapping[str, str]]:
        """Return the parameters that a model's own files have, by version."""
        reading = await self._read(source)
        return {spec.version: spec.parameters for spec in reading.specs if spec.name == load.model}

    async def _read(self, source: Source) -> ReadResult:
        """Read a source; where its models name weights that lie elsewhere, fetch those, and read it again."""
        source.elsewhere.begin()
        reading = await self._read_once(source)
        if not source.elsewhere.lacking:
            return reading
        for lacking in source.elsewhere.lacking:
            try:
                path, folder = await self._brought(lacking)
            except ServeError as error:
                source.elsewhere.refuse(lacking.uri, frameless(error))
            else:
                source.elsewhere.add(lacking.uri, path, folder)
        return await self._read_once(source)

    async def _read_once(self, source: Source) -> ReadResult:
        form, asked = source.form, source.asked
        defaults = self._registered_defaults if source.is_registered else self.defaults
        defaults = replace(defaults, elsewhere=source.elsewhere.find)
        if source.fetched is not None:
            defaults = replace(defaults, scratch=source.fetched)
        takes_settings = asked is not None and isinstance(form, SupportsSource)
        read = partial(form.read, source.path)
        if asked is not None and isinstance(form, SupportsSource):
            read = partial(form.read_source, source.path, asked)

        def read_with_ways_out() -> ReadResult:
            reading = read(defaults)
            return replace(
                reading,
                unreadable=tuple(
                    self._claims.with_way_out(one, source.path, form) for one in reading.unreadable
                ),
            )

        try:
            async with asyncio.timeout(READ_SECONDS):
                reading = await asyncio.get_running_loop().run_in_executor(self._executor, read_with_ways_out)
        except TimeoutError:
            return ReadResult((), (_unread(source.path),))
        if asked is not None and source.fetched is not None:
            reading = _under_its_uri(reading, source.path, asked)
        return with_fit_names(reading if asked is None else applied(reading, asked, takes_settings))


def _check_within(path: Path, folder: str) -> None:
    """Raise NOT_FOUND for what lies elsewhere than its name says; no folder: it may."""
    if folder and not lies_within(path, folder):
        raise ServeError(
            Code.NOT_FOUND,
            f"{path} does not lie in {folder}: a link leads out of it. Put the model itself there, or have its own "
            "place allowed, and name that.",
        )


def _members_of(form: Format, spec: ModelSpec) -> Sequence[ModelSource]:
    return form.members(spec) if isinstance(form, SupportsMembers) else ()


def _remove_late(folder: Path, fetching: Future[Path]) -> None:
    """Remove what has come although it was given up: the fetch had ended by then."""
    if not fetching.cancelled() and fetching.exception() is None:
        threading.Thread(target=shutil.rmtree, args=(folder, True), daemon=True).start()


def _under_its_uri(reading: ReadResult, path: Path, source: ModelSource) -> ReadResult:
    """Have findings about files that were fetched name the URI that they are from."""

    def renamed(model: InvalidModel) -> InvalidModel:
        findings = tuple(
            replace(each, file=_renamed(each.file, path, source), found=_renamed(each.found, path, source))
            for each in model.findings
        )
        return replace(model, findings=findings)

    return replace(reading, unreadable=tuple(map(renamed, reading.unreadable)))


def _renamed(text: str, path: Path, source: ModelSource) -> str:
    return text.replace(str(path), source.uri.partition("?")[0])


def _unfetched(source: ModelSource, error: ServeError) -> InvalidModel:
    uri = source.uri.partition("?")[0]
    finding = Finding(Severity.ERROR, uri, None, "", error.message, "", "")
    return InvalidModel(source.name or uri.rstrip("/").rpartition("/")[2], Path(uri), (finding,))


def _entry(name: str, reading: ReadResult, source: Source) -> ModelEntry:
    specs = tuple(spec for spec in reading.specs if spec.name == name)
    asked = {} if source.asked is None else {spec.version: source.asked for spec in specs}
    return ModelEntry(name, specs, source.form, asked, source.is_member)


def _joined(first: ModelEntry | None, second: ModelEntry) -> ModelEntry | None:
    """Both as one model; None where they are two of one name."""
    if first is None:
        return second
    versions = {spec.version for spec in first.specs}
    is_joined = (
        first.form is second.form
        and all(spec.version not in versions for spec in second.specs)
        and all(spec.is_versioned for spec in second.specs)
        and bool(first.asked and second.asked)
    )
    asked = {**first.asked, **second.asked}
    return ModelEntry(first.name, first.specs + second.specs, first.form, asked) if is_joined else None


def chosen(
    found: Sequence[ModelEntry], broken: Sequence[InvalidModel], names: Collection[str]
) -> tuple[list[ModelEntry], list[InvalidModel]]:
    """Return, of what was read, the models of these names, each with those that it needs; a name without any is
    unreadable.
    """
    by_name = {model.name: model for model in found}
    wanted = {one.name for name in names if name in by_name for one in with_members(by_name[name], found)}
    unfit = [unreadable for unreadable in broken if unreadable.name in names]
    known = wanted.union(unreadable.name for unreadable in unfit)
    absent = [_absent(name) for name in dict.fromkeys(names) if name not in known]
    return [model for model in found if model.name in wanted], unfit + absent


def loading_order(found: Sequence[ModelEntry]) -> list[list[ModelEntry]]:
    """Models that can be loaded at the same time, wave after wave: a graph after all its members."""
    by_name = {model.name: model for model in found}
    order, _ = waves({name: model.needs for name, model in by_name.items()})
    return [[by_name[name] for name in wave] for wave in order]


def with_members(model: ModelEntry, found: Sequence[ModelEntry]) -> list[ModelEntry]:
    """The model and, in front of it, those of `found` that it needs, directly or through others, in loading order."""
    by_name = {one.name: one for one in found}
    wanted: set[str] = set()
    fresh = {model.name}
    while fresh:
        wanted |= fresh
        fresh = {need for name in fresh for need in by_name[name].needs if need in by_name} - wanted
    return [one for wave in loading_order(found) for one in wave if one.name in wanted]


def _without_circles(found: dict[str, ModelEntry], broken: list[InvalidModel]) -> list[ModelEntry]:
    """Those found; graphs that need one another in a circle, or each other's members so, go to the broken ones."""
    needs = {name: model.needs for name, model in found.items()}
    _, stuck = waves(needs)
    for name in stuck:
        way = circle(name, needs)
        if way:
            broken.append(_circular(found.pop(name).specs[0], way))
    _, stuck = waves({name: model.needs for name, model in found.items()})
    assert not stuck, "taking out every member of a circle left one"
    return list(found.values())


def _circular(spec: ModelSpec, way: Sequence[str]) -> InvalidModel:
    return InvalidModel(spec.name, spec.root, (circular(spec, way),))


def _unread(path: Path) -> InvalidModel:
    found = f"it could not be read within {READ_SECONDS:g} s"
    hint = "Look at its disk or network share, and load it again."
    return InvalidModel(path.name, path, (Finding(Severity.ERROR, str(path), None, "", found, "", hint),))


def _absent(name: str) -> InvalidModel:
    fault = Finding(
        Severity.ERROR,
        name,
        None,
        "",
        "no such model",
        "a model of one of the paths served",
        "Correct the name, or add its folder.",
    )
    return InvalidModel(name, Path(name), (fault,))


def _twice(spec: ModelSpec, first: ModelSpec) -> InvalidModel:
    finding = Finding(
        Severity.ERROR,
        str(spec.root),
        None,
        "name",
        f"a second model named '{spec.name}'",
        "names that are unique over all paths",
        f"The first is in {first.root}; rename one of them or serve it elsewhere.",
    )
    return InvalidModel(spec.name, spec.root, (finding,))
