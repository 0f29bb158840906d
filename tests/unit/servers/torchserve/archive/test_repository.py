"""TorchServe's archives, folders and stores: what is claimed, what becomes of them, and what is refused."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from trivium.servers.torchserve.archive.repository import FORMAT, TorchServeFormat
from trivium.servers.torchserve.words.layers import NO_RULES, SequenceNames, ServerRules
from trivium.types.findings import Finding, Severity
from trivium.types.schedules import Sequence, SequenceProperties, Strategy, Unannounced
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import (
    All,
    Batching,
    Defaults,
    Device,
    Dynamic,
    InstanceGroup,
    ModelFacts,
    ModelSpec,
    Origin,
    OwnEnvironment,
)

PLACE = "MAR-INF/MANIFEST.json"
HANDLER = "def handle(data, context):\n    return data\n"


def manifest(**model: object) -> str:
    told = {"modelName": "digits", "modelVersion": "1.0", "handler": "handler.py", **model}
    kept = {key: value for key, value in told.items() if value is not None}
    return json.dumps({"runtime": "python", "model": kept}, indent=2)


def files(config: str | None = None, **model: object) -> dict[str, str]:
    found = {PLACE: manifest(**model), "handler.py": HANDLER}
    if config is not None:
        found[PLACE] = manifest(**{"configFile": "model-config.yaml", **model})
        found["model-config.yaml"] = config
    return found


def mar(path: Path, contents: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in contents.items():
            file.writestr(name, text)
    return path


def folder(path: Path, contents: Mapping[str, str]) -> Path:
    for name, text in contents.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def tgz(path: Path, contents: Mapping[str, str]) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for name, text in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            file.addfile(info, io.BytesIO(text.encode()))
    path.write_bytes(gzip.compress(buffer.getvalue()))
    return path


@pytest.fixture
def defaults(tmp_path: Path) -> Defaults:
    return Defaults(queue_items=77, cpus=8, scratch=tmp_path / ".scratch")


def one(path: Path, defaults: Defaults) -> ModelSpec:
    reading = FORMAT.read(path, defaults)
    assert [str(finding) for model in reading.unreadable for finding in model.findings] == []
    (spec,) = reading.specs
    return spec


def faults(path: Path, defaults: Defaults) -> list[Finding]:
    reading = FORMAT.read(path, defaults)
    assert reading.specs == ()
    (model,) = reading.unreadable
    return [finding for finding in model.findings if finding.severity is Severity.ERROR]


# -- what is claimed ---------------------------------------------------------------------------------------


def test_claims(tmp_path: Path) -> None:
    mar(tmp_path / "a.mar", {})
    mar(tmp_path / "with.zip", files())
    mar(tmp_path / "without.zip", {"model.py": ""})
    tgz(tmp_path / "top.tar.gz", files())
    tgz(tmp_path / "below.tgz", {f"digits/{name}": text for name, text in files().items()})
    tgz(tmp_path / "other.tar.gz", {"a/b/MAR-INF/MANIFEST.json": "{}"})
    folder(tmp_path / "noarchive", files())
    folder(tmp_path / "plain", {"model.py": ""})
    (tmp_path / "empty").mkdir()
    claimed = {path.name for path in tmp_path.iterdir() if FORMAT.claims(path)}
    assert claimed == {"a.mar", "with.zip", "top.tar.gz", "below.tgz", "noarchive"}
    assert FORMAT.claims(tmp_path)
    assert not FORMAT.claims(tmp_path / "none")
    assert not FORMAT.claims(tmp_path / "a.mar" / "b")


def test_a_store_serves_its_models_and_names_what_it_left(tmp_path: Path, defaults: Defaults) -> None:
    store = tmp_path / "store"
    folder(store / "one", files(modelName="one"))
    mar(store / "two.mar", files(modelName="two"))
    mar(store / "two-more.mar", files(modelName="two", modelVersion="2.0"))
    folder(store, {".hidden/x": ""})
    assert FORMAT.claims(store)
    reading = FORMAT.read(store, defaults)
    assert sorted((spec.name, spec.version) for spec in reading.specs) == [
        ("one", "1.0"),
        ("two", "1.0"),
        ("two", "2.0"),
    ]
    assert all(spec.version_policy == All() for spec in reading.specs)
    assert not reading.specs[0].reports
    (store / "README").touch()
    (store / "config.properties").touch()
    (store / "no_model").mkdir()
    assert FORMAT.claims(store)
    reading = FORMAT.read(store, defaults)
    assert len(reading.specs) == 3
    (finding,) = reading.specs[0].reports
    assert finding.severity is Severity.NOTICE
    assert finding.found.endswith("left alone: README, config.properties, no_model/")
    assert "trivium torchserve --ts-config" in finding.hint


def test_a_folder_without_any_model_is_no_store(tmp_path: Path) -> None:
    folder(tmp_path / "store", {"README": "", "no_model/x": ""})
    assert not FORMAT.claims(tmp_path / "store")


# -- what others say of a model ----------------------------------------------------------------------------


def setting(value: str, key: str = "k") -> SourceSetting:
    return SourceSetting(value, Origin("elsewhere", key))


def asked(path: Path, defaults: Defaults, rules: ServerRules = NO_RULES, **over: str) -> ModelSpec:
    source = ModelSource(str(path), over={key: setting(value, key) for key, value in over.items()})
    reading = TorchServeFormat(rules).read_source(path, source, defaults)
    assert [str(finding) for model in reading.unreadable for finding in model.findings] == []
    (spec,) = reading.specs
    return spec


RULES = ServerRules(
    under={"minWorkers": setting("3"), "responseTimeout": setting("7"), "jobQueueSize": setting("5")},
    by_version={("digits", "1.0"): {"minWorkers": setting("2"), "batchSize": setting("4")}},
    handler=setting("handler.py", "default_service_handler"),
    gpus=0,
)


def test_the_call_goes_before_the_property_models_and_that_before_the_servers_defaults(
    tmp_path: Path, defaults: Defaults
) -> None:
    path = mar(tmp_path / "a.mar", files())
    spec = asked(path, defaults, RULES)
    assert (spec.groups[0].minimum, spec.groups[0].maximum, spec.batching.max_rows) == (2, 2, 4)
    assert (spec.limits.run_deadline, spec.limits.queue_items) == (7, 5)
    assert spec.origin["batching.max_rows"] == Origin("elsewhere", "k")
    over = {"batch_size": "8", "initial_workers": "0", "response_timeout": "9", "max_batch_delay": "0"}
    spec = asked(path, defaults, RULES, **over)
    assert (spec.groups[0].minimum, spec.groups[0].maximum, spec.batching.max_rows) == (0, 0, 8)
    assert spec.limits.run_deadline == 9
    assert spec.origin["groups[0].minimum"] == Origin("elsewhere", "initial_workers")


def test_what_is_laid_down_of_another_version_is_said_to_have_no_effect(
    tmp_path: Path, defaults: Defaults
) -> None:
    path = mar(tmp_path / "a.mar", files())
    for version, count in (("2.0", 1), ("1.0", 0)):
        rules = ServerRules(by_version={("digits", version): {"batchSize": setting("4")}})
        reports = [str(one) for one in asked(path, defaults, rules).reports if "version" in one.found]
        assert len(reports) == count, reports
    rules = ServerRules(by_version={("digits", "2.0"): {"batchSize": setting("4")}})
    (said,) = asked(path, defaults, rules).reports
    assert str(said) == (
        "elsewhere: k: it is about version 2.0 of digits; of 1.0, which is served, it says nothing. Write 1.0 in its "
        "place, if that is meant."
    )


def test_a_file_goes_before_the_call_with_its_workers_and_time_outs_also_those_it_does_not_give(
    tmp_path: Path, defaults: Defaults
) -> None:
    path = mar(tmp_path / "a.mar", files("minWorkers: 1\nmaxWorkers: 6\nbatchSize: 2\n"))
    over = {"batch_size": "8", "initial_workers": "4", "response_timeout": "9"}
    spec = asked(path, defaults, RULES, **over)
    assert (spec.groups[0].minimum, spec.groups[0].maximum, spec.batching.max_rows) == (1, 6, 8)
    assert spec.limits.run_deadline == 120


def test_who_names_the_handler_of_an_archive(tmp_path: Path, defaults: Defaults) -> None:
    bare = mar(tmp_path / "bare.mar", {"handler.py": HANDLER, "other.py": HANDLER})
    spec = asked(bare, defaults, RULES)
    assert (spec.entry, spec.origin["entry"].key) == ("handler.py", "default_service_handler")
    assert asked(bare, defaults, handler="other.py:handle").entry == "other.py"
    full = mar(tmp_path / "full.mar", {**files(), "other.py": HANDLER})
    assert asked(full, defaults, handler="other.py").entry == "other.py"


@pytest.mark.parametrize(
    ("over", "key"),
    [
        ({"batch_size": "0"}, "batch_size"),
        ({"batch_size": "many"}, "batch_size"),
        ({"initial_workers": "-1"}, "initial_workers"),
        ({"initial_workers": "1000000000"}, "initial_workers"),
        ({"runtime": "LSP"}, "runtime"),
        ({"handler": "../x.py"}, "handler"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_what_cannot_be_asked_for_is_named(
    tmp_path: Path, defaults: Defaults, over: dict[str, str], key: str
) -> None:
    path = mar(tmp_path / "a.mar", files())
    source = ModelSource(str(path), over={name: setting(value, name) for name, value in over.items()})
    (model,) = FORMAT.read_source(path, source, defaults).unreadable
    assert key in {finding.key for finding in model.findings}


def test_a_link_of_a_store_that_leads_out_of_it_is_followed_where_it_may_be_alone(
    tmp_path: Path, defaults: Defaults
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mar(store / "near.mar", files())
    outside = mar(tmp_path / "outside.mar", {**files(), PLACE: manifest(modelVersion="2.0")})
    (store / "far.mar").symlink_to(outside)
    (store / "again.mar").symlink_to(store / "near.mar")
    reading = FORMAT.read_source(store, ModelSource(str(store)), defaults)
    assert {spec.version for spec in reading.specs} == {"1.0", "2.0"}
    reading = FORMAT.read_source(store, ModelSource(str(store), within=str(store)), defaults)
    assert [spec.version for spec in reading.specs] == ["1.0"]
    (finding,) = (each for model in reading.unreadable for each in model.findings if "link" in each.found)
    assert (finding.file, "allowed_urls" in finding.hint) == (str(store / "far.mar"), True)


def test_neighbours_of_a_broken_archive_load(tmp_path: Path, defaults: Defaults) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mar(store / "good.mar", files())
    mar(store / "twin.mar", files())
    mar(store / "escaping.mar", {"../x": ""})
    (store / "damaged.mar").write_bytes(b"no zip")
    reading = FORMAT.read(store, defaults)
    assert [spec.name for spec in reading.specs] == ["digits"]
    assert [model.root.name for model in reading.unreadable] == ["damaged.mar", "escaping.mar", "twin.mar"]


# -- what becomes of one -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["mar", "folder", "tgz", "tgz below"])
def test_every_form_reads_alike(tmp_path: Path, defaults: Defaults, form: str) -> None:
    below = {f"digits/{name}": text for name, text in files().items()}
    path = {
        "mar": lambda: mar(tmp_path / "x.mar", files()),
        "folder": lambda: folder(tmp_path / "x", files()),
        "tgz": lambda: tgz(tmp_path / "x.tar.gz", files()),
        "tgz below": lambda: tgz(tmp_path / "x.tar.gz", below),
    }[form]()
    spec = one(path, defaults)
    assert (spec.name, spec.version, spec.engine, spec.entry) == (
        "digits",
        "1.0",
        "python-torchserve",
        "handler.py",
    )
    assert (spec.root / spec.entry).read_text() == HANDLER
    assert (spec.batching, spec.scheduling) == (Batching(), Dynamic())
    assert spec.groups == (InstanceGroup("digits"),)
    assert (spec.limits.queue_items, spec.limits.run_deadline, spec.limits.startup_deadline) == (
        77,
        120.0,
        120.0,
    )
    assert spec.handler is not None
    assert (spec.handler.function, spec.handler.path, spec.handler.directory) == ("", (spec.root,), spec.root)
    assert spec.handler.settings["manifest"] == json.loads(manifest())
    assert spec.handler.settings["model_yaml_config"] == {}
    assert spec.reports == ()
    assert FORMAT.finish(spec, ModelFacts((), (), False)) == spec
    assert "8 here" in str(spec.origin["groups[0].minimum"])
    assert str(spec.origin["name"]).endswith("MANIFEST.json:4 (model.modelName)")


def test_the_configuration(tmp_path: Path, defaults: Defaults) -> None:
    config = (
        "minWorkers: 2\nmaxWorkers: 3\nbatchSize: 4\nmaxBatchDelay: 250\nresponseTimeout: 30\nstartupTimeout: 40\n"
        "jobQueueSize: 5\nhandler: {classes: {0: cat}}\n"
    )
    spec = one(folder(tmp_path / "x", files(config)), defaults)
    assert spec.batching == Batching(False, 4, True)
    assert spec.scheduling == Dynamic(max_delay=0.25)
    assert (spec.groups[0].minimum, spec.groups[0].maximum) == (2, 3)
    assert (spec.limits.queue_items, spec.limits.run_deadline, spec.limits.startup_deadline) == (
        5,
        30.0,
        40.0,
    )
    assert str(spec.origin["batching.max_rows"]).endswith("model-config.yaml:3 (batchSize)")
    assert spec.handler is not None
    passed = spec.handler.settings["model_yaml_config"]
    assert isinstance(passed, dict)
    assert passed["handler"] == {"classes": {"//yaml": "pairs", "value": [[0, "cat"]]}}


@pytest.mark.parametrize(
    ("envelope", "is_merged"),
    [("", True), ("body", True), ("json", True), ("kserve", False), ("kservev2", False)],
)
def test_an_envelope_that_holds_one_request_has_each_run_alone(
    tmp_path: Path, defaults: Defaults, envelope: str, is_merged: bool
) -> None:
    spec = asked(folder(tmp_path / "x", files("batchSize: 4\n")), defaults, ServerRules(envelope=envelope))
    assert spec.handler is not None
    assert spec.handler.settings["service_envelope"] == envelope
    assert (spec.batching.max_rows, spec.batching.merge) == (4, is_merged)
    assert spec.scheduling == Dynamic(max_delay=0.1 if is_merged else 0.0)
    found = [str(report) for report in spec.reports]
    assert ["holds one request" in text for text in found] == ([] if is_merged else [True])
    single = asked(folder(tmp_path / "y", files("")), defaults, ServerRules(envelope=envelope))
    assert single.reports == ()


def test_a_batch_waits_for_the_usual_time(tmp_path: Path, defaults: Defaults) -> None:
    assert one(folder(tmp_path / "x", files("batchSize: 2\n")), defaults).scheduling.max_delay == 0.1
    spec = one(folder(tmp_path / "y", files("batchSize: 2\nmaxBatchDelay: 0\n")), defaults)
    assert spec.scheduling.max_delay == 0.0


STATEFUL = "minWorkers: 2\nmaxWorkers: 4\nsequenceBatching: true\nsequenceMaxIdleMSec: 90000\n"


def test_sequences(tmp_path: Path, defaults: Defaults) -> None:
    text = (
        f"{STATEFUL}batchSize: 4\nmaxNumSequence: 6\nmaxSequenceJobQueueSize: 3\nsequenceTimeoutMSec: 1500\n"
    )
    spec = one(mar(tmp_path / "a.mar", files(text)), defaults)
    names = SequenceProperties(
        "ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"
    )
    assert spec.scheduling == Sequence(
        Strategy.OLDEST,
        90.0,
        spec.scheduling.candidates,
        max_delay=0.1,
        unannounced=Unannounced(names, "ts-seq-", 6, 3, 1.5),
    )
    assert spec.scheduling.candidates >= 6
    assert spec.limits.queue_items >= 6 * (3 + 1)
    assert spec.groups[0].idle_seconds == 91.0  # until its last sequence is over
    assert spec.origin["scheduling.unannounced.most"].key == "maxNumSequence"
    assert not [finding for finding in spec.reports if "equence" in finding.key]


def test_sequences_with_as_little_as_may_be_said(tmp_path: Path, defaults: Defaults) -> None:
    names = SequenceNames("a", "b", "c")
    path = mar(tmp_path / "a.mar", files(f"{STATEFUL}continuousBatching: true\nbatchSize: 3\n"))
    (spec,) = TorchServeFormat(ServerRules(sequence_names=names)).read(path, defaults).specs
    assert isinstance(spec.scheduling, Sequence)
    assert spec.scheduling.unannounced == Unannounced(SequenceProperties("a", "b", "c"), "ts-seq-", 1, 1)
    assert (spec.scheduling.max_delay, spec.scheduling.overlaps) == (0.0, True)
    assert "maxNumSequence" in {finding.key for finding in spec.reports}
    assert spec.handler is not None
    assert spec.handler.settings["slots"] == 6
    assert spec.handler.environment["TS_REQUEST_SEQUENCE_END"] == "c"


def test_without_sequences_their_bounds_are_reported(tmp_path: Path, defaults: Defaults) -> None:
    spec = one(mar(tmp_path / "a.mar", files("sequenceMaxIdleMSec: 5\nmaxNumSequence: 2\n")), defaults)
    assert isinstance(spec.scheduling, Dynamic)
    said = {finding.key: finding.found for finding in spec.reports}
    assert said == dict.fromkeys(
        ("sequenceMaxIdleMSec", "maxNumSequence"), "it has an effect with sequenceBatching: true only"
    )


def test_times_that_a_worker_and_a_client_have(tmp_path: Path, defaults: Defaults) -> None:
    text = "maxRetryTimeoutInSec: 0\nclientTimeoutInMills: 1500\n"
    limits = one(mar(tmp_path / "a.mar", files(text)), defaults).limits
    assert (limits.retry_seconds, limits.item_deadline) == (0.0, 1.5)
    assert limits.retry_steps[:7] == (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0)
    limits = one(mar(tmp_path / "b.mar", files("clientTimeoutInMills: 0\n")), defaults).limits
    assert (limits.retry_seconds, limits.item_deadline) == (300.0, None)


def test_the_servers_limits_are_its_models(tmp_path: Path, defaults: Defaults) -> None:
    path = mar(tmp_path / "a.mar", files())
    (spec,) = TorchServeFormat(ServerRules(answer_bytes=9, unregister_seconds=3.0)).read(path, defaults).specs
    assert (spec.limits.answer_bytes, spec.limits.drain_seconds) == (9, 3.0)
    assert (one(path, defaults).limits.answer_bytes, one(path, defaults).limits.drain_seconds) == (None, None)


def test_an_asynchronous_handler(tmp_path: Path, defaults: Defaults) -> None:
    spec = one(mar(tmp_path / "a.mar", files("asyncCommunication: true\nbatchSize: 4\n")), defaults)
    assert spec.handler is not None
    assert spec.handler.settings["in_flight"] == 1000
    assert (spec.batching.max_rows, spec.batching.merge, spec.scheduling) == (4, False, Dynamic())
    assert [finding.key for finding in spec.reports] == ["batchSize"]


def test_requests_may_need_a_ticket(tmp_path: Path, defaults: Defaults) -> None:
    spec = one(mar(tmp_path / "a.mar", files("useJobTicket: true\nminWorkers: 1\nmaxWorkers: 3\n")), defaults)
    assert spec.limits.needs_free
    assert spec.origin["limits.needs_free"].line == 1
    assert [finding.key for finding in spec.reports] == ["maxWorkers"]
    assert not one(mar(tmp_path / "b.mar", files()), defaults).limits.needs_free


def test_workers_and_devices(tmp_path: Path, defaults: Defaults) -> None:
    gpus = Defaults(gpus=2)
    turned = one(folder(tmp_path / "a", files("minWorkers: 3\nmaxWorkers: 2\n")), defaults)
    assert (turned.groups[0].minimum, turned.groups[0].maximum) == (1, 1)
    assert "less than minWorkers" in str(turned.reports[0])
    for key in ("minWorkers", "maxWorkers"):
        refused = FORMAT.read(folder(tmp_path / key, files(f"batchSize: 1\n{key}: 100000\n")), defaults)
        (fault,) = refused.unreadable[0].findings
        assert (fault.key, fault.line, fault.expected) == (key, 2, "a number from 1 to 1024")
    on_gpu = one(folder(tmp_path / "b", files()), gpus).groups[0]
    assert (on_gpu.device, on_gpu.device_ids) == (Device.GPU, (0, 1))
    chosen = one(folder(tmp_path / "c", files("deviceIds: [1]\n")), gpus).groups[0]
    assert chosen.device_ids == (1,)
    wrong = one(folder(tmp_path / "d", files("deviceIds: [1, 5]\n")), gpus)
    assert (wrong.groups[0].device_ids, len(wrong.reports)) == ((0, 1), 1)
    cpu = one(folder(tmp_path / "e", files("deviceType: cpu\n")), gpus).groups[0]
    assert (cpu.device, cpu.device_ids) == (Device.CPU, ())
    none = one(folder(tmp_path / "f", files("deviceType: gpu\n")), defaults)
    assert (none.groups[0].device, len(none.reports)) == (Device.CPU, 1)
    odd = one(folder(tmp_path / "g", files("deviceType: tpu\n")), defaults)
    assert "neither cpu nor gpu" in str(odd.reports[0])


def test_handlers(tmp_path: Path, defaults: Defaults) -> None:
    named = one(folder(tmp_path / "a", {**files(handler="handler:run")}), defaults)
    assert named.handler is not None
    assert (named.entry, named.handler.function) == ("handler.py", "run")
    deep = one(folder(tmp_path / "b", {**files(handler="deep/h.py:run"), "deep/h.py": ""}), defaults)
    assert deep.handler is not None
    assert (deep.entry, deep.handler.path) == ("deep/h.py", (deep.root / "deep", deep.root))
    base = one(folder(tmp_path / "c", files(handler="base_handler")), defaults)
    assert base.entry == "base_handler"
    own = one(
        folder(tmp_path / "d", {**files(handler="image_classifier"), "image_classifier.py": ""}), defaults
    )
    assert own.entry == "image_classifier.py"


def test_requirements_are_reported_where_nothing_may_be_installed(tmp_path: Path, defaults: Defaults) -> None:
    spec = one(folder(tmp_path / "x", files(requirementsFile="requirements.txt")), defaults)
    assert "not installed" in str(spec.reports[0])
    assert spec.handler is not None
    assert spec.handler.own is None


@pytest.mark.parametrize(
    ("config", "has_file", "own"),
    [
        (None, False, None),
        ("useVenv: true\n", False, OwnEnvironment(is_private=True)),
        ("useVenv: false\n", False, None),
        (None, True, OwnEnvironment("needs.txt", needs_packages=True)),
        ("useVenv: true\n", True, OwnEnvironment("needs.txt", is_private=True, needs_packages=True)),
    ],
)
def test_the_environment_of_a_model(
    tmp_path: Path, defaults: Defaults, config: str | None, has_file: bool, own: OwnEnvironment | None
) -> None:
    """Requirements that are not in the manifest are not installed, as in the original."""
    contents = files(config, **({"requirementsFile": "needs.txt"} if has_file else {}))
    place = folder(tmp_path / "x", {**contents, "needs.txt": "tiny\n"})
    spec = one(place, replace(defaults, installs=True))
    assert spec.handler is not None
    assert spec.handler.own == own
    assert spec.reports == ()


def test_requirements_that_are_not_there_are_a_fault_where_they_are_installed(
    tmp_path: Path, defaults: Defaults
) -> None:
    place = folder(tmp_path / "x", files(requirementsFile="needs.txt"))
    (fault,) = FORMAT.read(place, replace(defaults, installs=True)).unreadable[0].findings
    assert (fault.key, fault.hint) == ("model.requirementsFile", "Pack it, too.")


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contents", "key", "words"),
    [
        ({"handler.py": HANDLER}, "model.handler", "no MAR-INF"),
        (files(handler=None), "model.handler", "no handler"),
        (files(handler="other.py"), "model.handler", "handler.py"),
        (files(handler="trt_llm_handler"), "model.handler", "not supported in this version"),
        (files(serializedFile="weights.pt"), "model.serializedFile", "weights.pt"),
        (files(modelFile="net.py"), "model.modelFile", "net.py"),
        (files(configFile="c.yaml"), "model.configFile", "c.yaml"),
        (files(modelVersion=None), "model.modelVersion", "missing"),
        (
            files("sequenceBatching: true"),
            "sequenceMaxIdleMSec",
            "no sequenceMaxIdleMSec with sequenceBatching",
        ),
        (
            files("asyncCommunication: true\ncontinuousBatching: true"),
            "continuousBatching",
            "continuousBatching with asyncCommunication",
        ),
        (files("torchrun: {nproc-per-node: 4}"), "torchrun", "not supported in this version"),
        (files("parallelType: tp"), "parallelType", "not supported in this version"),
        (files("["), "", "stream end"),
        ({PLACE: "{", "handler.py": ""}, "", "no JSON"),
    ],
)
def test_faults(tmp_path: Path, defaults: Defaults, contents: dict[str, str], key: str, words: str) -> None:
    (fault,) = faults(mar(tmp_path / "x.mar", contents), defaults)
    assert fault.key == key
    assert words in str(fault)
    assert fault.hint


def test_all_faults_at_once(tmp_path: Path, defaults: Defaults) -> None:
    found = faults(folder(tmp_path / "x", files("torchrun: {}\n", handler="no.py", modelName=None)), defaults)
    assert {fault.key for fault in found} == {"model.modelName", "model.handler", "torchrun"}


def test_archives_need_scratch(tmp_path: Path) -> None:
    (fault,) = faults(mar(tmp_path / "x.mar", files()), Defaults())
    assert "nowhere" in str(fault) or "no folder to unpack it in" in str(fault)


def test_the_name_of_an_archive_without_one(tmp_path: Path, defaults: Defaults) -> None:
    reading = FORMAT.read(mar(tmp_path / "my model-2.mar", files(modelName=None)), defaults)
    assert [model.name for model in reading.unreadable] == ["my_model_2"]
