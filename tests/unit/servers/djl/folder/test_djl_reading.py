import json
import sys
import tarfile
from dataclasses import replace

import pytest
from tests.harness.djl_folders import DEFAULTS, FORMAT, HANDLER, TORCHSERVE, faults, make, one, zipped

from trivium.servers.djl.folder.environment import EnvironmentRules
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.findings import Severity
from trivium.types.spec import (
    Batching,
    Device,
    Dynamic,
    Handler,
    InstanceGroup,
    Join,
    Limits,
    MemoryNeed,
    ModelFacts,
    Origin,
    TensorSpec,
)

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
ASYNC = "async def handle(inputs): pass"


def test_a_bare_folder_with_a_handler(tmp_path):
    folder = make(tmp_path, "my-model", model_py=HANDLER)
    spec = one(folder)
    assert (spec.name, spec.version, spec.root, spec.engine, spec.entry) == (
        "my_model",
        "1",
        folder,
        "python-djl",
        "model.py",
    )
    assert spec.handler == Handler("", "handle", (folder,), folder, ONE_THREAD, {"properties": {}})
    assert spec.batching == Batching(False, 1, False)
    assert spec.scheduling == Dynamic(max_delay=0.1, levels=10, default_level=3)
    assert spec.groups == (InstanceGroup("my_model_cpu", 1, 3),)
    assert spec.limits == Limits(17, 120.0, 240.0, 10, fills_early=True)
    assert spec.reports == ()
    assert str(spec.origin["groups[0].maximum"]) == "DJL's default: one per CPU"
    assert str(spec.origin["entry"]) == "the file model.py"


def test_settings_of_a_handler(tmp_path):
    folder = make(
        tmp_path,
        "m",
        "engine=Python",
        "option.entryPoint=code/serve.py",
        "option.handler=run",
        f"option.pythonExecutable={sys.executable}",
        "option.env=A=1,B=2",
        "batch_size=8",
        "max_batch_delay=250",
        "job_queue_size=5",
        "option.predict_timeout=7",
        "option.model_loading_timeout=60",
        "retry_threshold=0",
        "minWorkers=2",
        "cpu.maxWorkers=4",
        "max_idle_time=9",
        "topK=3",
    )
    (folder / "code").mkdir()
    (folder / "code" / "serve.py").write_text("def run(inputs): pass")
    spec = one(folder)
    file = str(folder / "serving.properties")
    assert spec.entry == "code/serve.py"
    assert spec.handler.function == "run"
    assert spec.handler.python == sys.executable
    assert spec.handler.environment == {"A": "1", "B": "2", **ONE_THREAD}
    told = spec.handler.settings["properties"]
    assert told["topK"] == "3"
    assert told["predict_timeout"] == "7"
    assert told["batch_size"] == "8"
    assert "env" not in told
    assert spec.batching == Batching(False, 8, True)
    assert spec.scheduling == Dynamic(max_delay=0.25, levels=10, default_level=3)
    assert spec.limits == Limits(5, 7.0, 60.0, 0, deaths=0, fills_early=True)
    assert spec.groups == (InstanceGroup("m_cpu", 2, 4, 9.0),)
    assert spec.origin["batching.max_rows"] == Origin(file, "batch_size", 6)
    assert spec.origin["limits.run_deadline"] == Origin(file, "option.predict_timeout", 9)
    assert spec.origin["handler.python"] == Origin(file, "option.pythonExecutable", 4)


def test_a_stray_comma_is_read_as_meant_whoever_reads_the_value(tmp_path):
    spec = one(make(tmp_path, "m", "batch_size=4,", "width=224,", "centerCrop=true,", model_py=HANDLER))
    told = spec.handler.settings["properties"]
    assert (spec.batching.max_rows, told["width"], told["centerCrop"]) == (4, "224", "true")
    assert [(finding.severity, finding.line) for finding in spec.reports] == [
        (Severity.NOTICE, line) for line in (1, 2, 3)
    ]


MB = 2**20


@pytest.mark.parametrize(
    ("lines", "gpus", "memory"),
    [
        ([], 0, ()),
        (["required_memory_mb=7"], 0, (MemoryNeed(Device.CPU, 7 * MB, 500 * MB),)),
        (["required_memory_mb=7", "reserved_memory_mb=0"], 0, (MemoryNeed(Device.CPU, 7 * MB),)),
        (["reserved_memory_mb=9"], 0, (MemoryNeed(Device.CPU, 0, 9 * MB),)),
        (["gpu.required_memory_mb=8"], 0, ()),
        (["gpu.required_memory_mb=8"], 2, (MemoryNeed(Device.GPU, 8 * MB, 500 * MB),)),
        (
            [
                "required_memory_mb=7",
                "reserved_memory_mb=1",
                "gpu.required_memory_mb=8",
                "gpu.reserved_memory_mb=2",
            ],
            1,
            (MemoryNeed(Device.CPU, 7 * MB, MB), MemoryNeed(Device.GPU, 8 * MB, 2 * MB)),
        ),
    ],
)
def test_memory_that_is_to_be_free(tmp_path, lines, gpus, memory):
    spec = one(make(tmp_path, "m", *lines, model_py=HANDLER), replace(DEFAULTS, gpus=gpus))
    assert spec.limits.memory == memory


def test_the_other_spellings(tmp_path):
    lines = ("max_dynamic_batch_size=4", "option.max_batch_delay=5", "option.max_idle_time=3", "maxWorkers=0")
    spec = one(make(tmp_path, "m", *lines, model_py=HANDLER))
    assert spec.batching.max_rows == 4
    assert spec.scheduling.max_delay == 0.005
    assert spec.groups == (InstanceGroup("m_cpu", 1, 3, 3.0),)
    assert one(make(tmp_path, "n", "batch_size=2", model_py=HANDLER)).scheduling.max_delay == 0.1


def test_a_module_as_entry(tmp_path):
    folder = make(tmp_path, "m", "option.entryPoint=pkg.serve")
    assert one(folder).entry == "pkg.serve"
    assert one(folder).engine == "python-djl"


def test_of_two_files_the_one_with_a_handler(tmp_path):
    assert one(make(tmp_path, "m", "engine=Python", m_py="x = 1", model_py=HANDLER)).entry == "model.py"
    assert one(make(tmp_path, "n", "engine=Python", n_py=HANDLER, model_py=HANDLER)).entry == "n.py"
    assert one(make(tmp_path, "o", "engine=Python", o_py="from x import *")).entry == "o.py"
    assert one(make(tmp_path, "p", "option.modelName=q", q_py=HANDLER)).entry == "q.py"


@pytest.mark.parametrize(
    ("threads", "line", "variable", "most"),
    [
        (1, "", "1", 3),
        (2, "", "2", 1),
        (8, "", "8", 1),
        (0, "", None, 2),
        (1, "option.env=OMP_NUM_THREADS=4", "4", 3),
        (0, "option.env=OMP_NUM_THREADS=4", "4", 2),
        (1, "maxWorkers=7", "1", 7),
    ],
)
def test_threads_of_workers_and_how_many_there_are_by_default(tmp_path, threads, line, variable, most):
    folder = make(tmp_path, "m", "topK=1", line, model_py=HANDLER)
    (spec,) = DjlFormat(rules=EnvironmentRules(threads=threads)).read(folder, DEFAULTS).specs
    assert spec.handler.environment.get("OMP_NUM_THREADS") == variable
    assert spec.groups[0].maximum == most


@pytest.mark.parametrize(
    ("lines", "every"),
    [
        ([], 0),
        (["metrics_aggregation=5"], 0),
        (["log_model_metric=true"], 1000),
        (["log_request_metric=true", "metrics_aggregation=5"], 5),
        (["log_model_metric=false"], 0),
    ],
)
def test_metrics_in_the_log(tmp_path, lines, every):
    spec = one(make(tmp_path, "m", *lines, model_py=HANDLER))
    assert (spec.metrics.log_every, spec.reports) == (every, ())


def test_groups_per_gpu(tmp_path):
    """Sharp edge 20: `*` on GPUs is a group of workers for each; the queue is the model's."""
    two = replace(DEFAULTS, gpus=2)
    spec = one(make(tmp_path, "m", "gpu.minWorkers=2", "gpu.maxWorkers=3", model_py=HANDLER), two)
    assert spec.groups == tuple(
        InstanceGroup(f"m_gpu{number}", 2, 3, 60.0, Device.GPU, (number,)) for number in (0, 1)
    )
    spec = one(make(tmp_path, "n", "load_on_devices=1;cpu", model_py=HANDLER), two)
    assert [(group.name, group.minimum, group.maximum) for group in spec.groups] == [
        ("n_gpu1", 1, 1),
        ("n_cpu", 1, 3),
    ]


def test_more_workers_at_least_than_at_most(tmp_path):
    spec = one(make(tmp_path, "m", "minWorkers=9", model_py=HANDLER))
    assert (spec.groups[0].minimum, spec.groups[0].maximum) == (3, 3)
    assert spec.reports[0].severity is Severity.NOTICE
    assert (spec.reports[0].key, spec.reports[0].line) == ("minWorkers", 1)


def test_mpi_alone_runs_as_one_process_on_a_cpu(tmp_path):
    spec = one(make(tmp_path, "m", "engine=MPI", "option.mpi_mode=true", model_py=HANDLER))
    assert (spec.engine, spec.groups[0].ranks) == ("python-djl", 1)
    assert [finding.key for finding in spec.reports] == ["engine"]


def test_what_is_left_out_is_reported(tmp_path):
    folder = make(tmp_path, "m", model_py=HANDLER, requirements_txt="x")
    (folder / "adapters").mkdir()
    words = "; ".join(map(str, one(folder).reports))
    assert "requirements.txt" in words
    assert "adapters" in words


def test_an_onnx_model(tmp_path):
    lines = ("option.intraOpNumThreads=2", "option.executionMode=PARALLEL", "option.optLevel=BASIC_OPT")
    folder = make(tmp_path, "m", *lines, "option.cpuArenaAllocator=false", m_onnx="")
    spec = one(folder)
    assert (spec.engine, spec.entry, spec.handler) == ("onnx", "m.onnx", None)
    assert spec.parameters == {
        "intra_op_thread_count": "2",
        "inter_op_thread_count": "1",
        "execution_mode": "1",
        "graph_level": "-1",
        "enable_mem_arena": "0",
    }
    assert spec.origin["parameters[graph_level]"].line == 3
    assert spec.limits == Limits(queue_items=17, run_deadline=120.0, fills_early=True)
    assert spec.batching == Batching()


def test_a_library_of_operators_is_of_the_folder_or_absolute(tmp_path):
    folder = make(tmp_path, "m", "option.customOpLibrary=lib/my.so", "option.profilerOutput=p", model_onnx="")
    (folder / "lib").mkdir()
    (fault,) = faults(folder)
    assert (fault.key, fault.line) == ("option.customOpLibrary", 1)
    assert "no file" in fault.found
    (folder / "lib" / "my.so").touch()
    assert one(folder).parameters["custom_op_library"] == "lib/my.so"
    assert one(folder).parameters["profile_output"] == "p"
    absolute = make(tmp_path, "n", f"option.customOpLibrary={folder}/lib/my.so", model_onnx="")
    assert one(absolute).parameters["custom_op_library"] == f"{folder}/lib/my.so"
    (fault,) = faults(make(tmp_path, "o", "option.customOpLibrary=../m/lib/my.so", model_onnx=""))
    assert "leads out of" in fault.found
    (fault,) = faults(make(tmp_path, "p", r"option.customOpLibrary=a\u0000b", model_onnx=""))
    assert "correct" in fault.hint.lower()


def test_devices_of_onnx_runtime(tmp_path):
    gpu = replace(DEFAULTS, gpus=1)
    folder = make(tmp_path, "m", "option.ortDevice=TensorRT", model_onnx="")
    assert "tensorrt" in one(folder, gpu).parameters["accelerators"]
    (fault,) = faults(folder)
    assert (fault.key, fault.line, fault.expected) == ("option.ortDevice", 1, "a GPU in load_on_devices")
    for name in ("ROCM", "CoreML"):
        folder = make(tmp_path, name, f"option.ortDevice={name}", model_onnx="")
        for defaults, device in ((gpu, "gpu"), (DEFAULTS, "cpu")):
            spec = one(folder, defaults)
            told = [{"device": device, "name": name.lower()}]
            assert (json.loads(spec.parameters["accelerators"]), spec.reports) == (told, ())
            assert spec.origin["parameters[accelerators]"].line == 1


def test_a_torchscript_model(tmp_path):
    spec = one(
        make(tmp_path, "m", "engine=PyTorch", "option.modelName=net", "option.mapLocation=true", net_pt="")
    )
    assert (spec.engine, spec.entry, spec.parameters, spec.reports) == ("torch", "net.pt", {}, ())


@pytest.mark.parametrize(
    ("lines", "batching"),
    [
        (["batch_size=8", "batchifier=none"], Batching()),
        (["batch_size=8"], Batching(False, 8, True, Join.STACK)),
        (["batch_size=8", "batchifier=PADDING"], Batching(False, 8, True, Join.PAD)),
        (["batchifier=stack"], Batching(False, 1, False, Join.STACK)),
        (
            ["batch_size=2", "batchifier=ai.djl.translate.StackBatchifier"],
            Batching(False, 2, True, Join.STACK),
        ),
        (["batch_size=0"], Batching()),
    ],
)
def test_batches_of_native_engines(tmp_path, lines, batching):
    assert one(make(tmp_path, "m", *lines, model_onnx="")).batching == batching


def test_a_batchifier_of_somebodys_own_does_not_run_here(tmp_path):
    (fault,) = faults(make(tmp_path, "m", "batchifier=com.mine.Batch", model_onnx=""))
    assert (fault.key, fault.line) == ("batchifier", 1)
    assert "does not run here" in fault.found


def test_where_requests_are_stacked_the_first_dimension_is_the_servers(tmp_path):
    spec = one(make(tmp_path, "m", "batch_size=2", model_onnx=""))
    x, y = TensorSpec("x", DataType.FP32, (-1, 4)), TensorSpec("y", DataType.FP32, (-1,))
    done = FORMAT.finish(spec, ModelFacts((x,), (y,), True))
    assert (done.inputs[0].dims, done.outputs[0].dims) == ((4,), ())
    with pytest.raises(ConfigError) as caught:
        FORMAT.finish(spec, ModelFacts((x,), (y,), False))
    (fault,) = caught.value.findings
    assert (fault.key, fault.line) == ("batch_size", 1)
    assert "batchifier=none" in fault.hint


def test_a_saved_model_lies_at_the_top_or_in_the_folder_of_its_name(tmp_path):
    top = one(make(tmp_path / "a", "m", **{"saved_model.pb": ""}))
    assert (top.engine, top.entry, top.parameters) == ("tensorflow", "saved_model.pb", {})
    lines = [
        "engine=TENSORFLOW",
        "option.modelName=net",
        "option.Tags=serve,gpu",
        "option.SignatureDefKey=two",
    ]
    folder = make(tmp_path / "b", "m", *lines, "option.ConfigProto=CAE=")
    make(folder, "net", **{"saved_model.pb": ""})
    named = one(folder)
    assert named.entry == "net/saved_model.pb"
    assert named.parameters == {"tags": "serve,gpu", "signature": "two"}
    assert named.origin["parameters[signature]"].line == 4
    (report,) = named.reports
    assert (report.key, report.line) == ("option.ConfigProto", 5)
    assert "a session and threads of its own" in report.found
    (folder / "serving.properties").write_text("engine=TensorFlow\n")
    (fault,) = faults(folder)
    assert "saved_model.pb" in fault.expected
    assert "set option.modelName=net in serving.properties" in fault.hint


@pytest.mark.parametrize(
    ("settings", "files", "words"),
    [
        (["engine=Rust"], {}, "Export the model"),
        (["engine=Pyton"], {}, "Did you mean Python?"),
        (["engine=zzz"], {}, "Write one of them"),
        (["topK=1"], {"model.tflite": ""}, "TFLite"),
        (["topK=1"], {}, "no model file by which to choose"),
        (["engine=Python"], {}, "no Python file to run"),
        (["option.model_id=gpt2"], {}, "an id of the Hugging Face hub"),
        (["engine=Python", "option.entryPoint=djl_python.deepspeed"], {}, "no config.json"),
        (
            ["engine=Python", "option.entryPoint=djl_python.stable_diffusion"],
            {},
            "djl_python.stable_diffusion",
        ),
        (["option.entryPoint=https://x/model.py"], {}, "lies on the network"),
        (["option.entryPoint=modle.py"], {"model_py": HANDLER}, "Did you mean model.py?"),
        (["option.entryPoint=gone.py"], {}, "Add the file"),
        (["option.entryPoint=../m/model.py"], {"model_py": HANDLER}, "leads out of"),
        (["option.entryPoint=/etc/model.py"], {"model_py": HANDLER}, "leads out of"),
        (["maxWorkers=100000"], {"model_py": HANDLER}, "expected a whole number from 1 to 1024"),
        (["minWorkers=100000", "maxWorkers=100000"], {"model_py": HANDLER}, "maxWorkers=100000"),
        (["option.model_id=s3://b/x"], {"model_py": HANDLER}, "fetching models"),
        (["engine=PyTorch"], {"other_pt": ""}, "set option.modelName=other"),
        (["engine=OnnxRuntime"], {}, "m.onnx or model.onnx"),
        (["option.async_mode=false"], {"model_py": ASYNC}, "handle in model.py is an async function"),
        (["trivium_in_flight=65537"], {"model_py": ASYNC}, "expected a whole number from 1 to 65536"),
        (["trivium_in_flight=many"], {"model_py": ASYNC}, "expected a whole number"),
        (["batch_size=1000"], {"model_py": HANDLER}, "at most 999"),
        (["batch_size=x"], {"model_py": HANDLER}, "expected a whole number"),
        (["a=\\u12"], {"model_py": HANDLER}, "the escape"),
        (["translatorFactory=x.Y"], {"model_onnx": ""}, "classes in Java do not run here"),
        (["option.optLevel=7"], {"model_onnx": ""}, "one of NO_OPT"),
        (["option.ortDevice=tpu"], {"model_onnx": ""}, "one of TensorRT, ROCM, CoreML"),
        (["option.handler=hanlde"], {"model_py": HANDLER}, "Did you mean handle?"),
        (["option.handler=zzz"], {"model_py": HANDLER}, "Define zzz(inputs) there"),
        (["option.pythonExecutable=/absent/python"], {"model_py": HANDLER}, "which is not there"),
        (["option.pythonExecutable=python-of-nobody"], {"model_py": HANDLER}, "may not be run"),
        (["topK=1"], {"other_onnx": ""}, "set option.modelName=other in serving.properties"),
        (["engine=PyTorch"], {"net_pt": ""}, "rename it to model.pt"),
        (["load_on_devices=nc0"], {"model_py": HANDLER}, "the device 'nc0'"),
    ],
    ids=str,
)
def test_what_cannot_be_served_says_why(tmp_path, settings, files, words):
    folder = make(tmp_path, "m", *settings, **files)
    assert any(words in str(fault) for fault in faults(folder)), list(map(str, faults(folder)))


def test_a_handler_in_a_module_of_the_folder_is_looked_for(tmp_path):
    folder = make(tmp_path, "m", "option.entryPoint=pkg.serve", "option.handler=rnu")
    (folder / "pkg").mkdir()
    (folder / "pkg" / "serve.py").write_text("def run(inputs): pass")
    (fault,) = faults(folder)
    assert (fault.key, fault.line, fault.hint) == ("option.handler", 2, "Did you mean run?")


def test_one_device_that_is_none_is_one_finding(tmp_path):
    folder = make(tmp_path, "m", "option.ortDevice=tpu", model_onnx="")
    (broken,) = FORMAT.read(folder, DEFAULTS).unreadable
    assert [finding.key for finding in broken.findings] == ["option.ortDevice"]


def test_a_folder_that_is_not_claimed_gets_a_hint(tmp_path):
    folder = make(tmp_path, "m", net_onnx="")
    assert not FORMAT.claims(folder)
    assert FORMAT.hint(folder).startswith("net.onnx is named otherwise than the folder")
    assert FORMAT.hint(make(tmp_path, "n", x_txt="")) == ""
    assert FORMAT.hint(tmp_path / "gone") == ""


def test_what_is_said_of_an_archive_names_the_archive(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    defaults = replace(DEFAULTS, scratch=scratch)
    bad = make(tmp_path, "bad", "batch_size=x", "engine=Python")
    for archive, inner in (
        (zipped(bad, tmp_path / "b.zip"), ""),
        (zipped(bad, tmp_path / "c.zip", "in/"), "in/"),
    ):
        found = faults(archive, defaults)
        assert {fault.file for fault in found} == {f"{archive}/{inner}serving.properties"}
        assert not any("scratch" in str(fault) for fault in found)
    good = zipped(make(tmp_path, "good", "batch_sise=1", model_py=HANDLER), tmp_path / "g.zip")
    spec = one(good, defaults)
    assert (spec.shown_root, spec.reports[0].file) == (good, f"{good}/serving.properties")


def test_every_fault_is_named_at_once(tmp_path):
    folder = make(
        tmp_path, "m", "batch_size=x", "job_queue_size=y", "option.predict_timeout=z", model_py=HANDLER
    )
    assert sorted(fault.line for fault in faults(folder)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "text", "in_flight", "why"),
    [
        ([], ASYNC, 1000, "the server's own bound"),
        (["option.async_mode=True"], ASYNC, 1000, "the server's own bound"),
        (
            ["option.async_mode=true"],
            HANDLER,
            1000,
            "the server's own bound",
        ),  # it may return what can be awaited
        (["trivium_in_flight=7"], ASYNC, 7, "trivium_in_flight"),
        (["trivium_in_flight=0"], ASYNC, 1000, "the server's own bound"),
        (["option.async_mode=true", "option.entryPoint=some.module"], "", 1000, "the server's own bound"),
        (["option.async_mode=false"], HANDLER, None, ""),
        (["option.async_mode="], HANDLER, None, ""),
    ],
)
def test_an_asynchronous_handler_has_many_requests_in_work(tmp_path, settings, text, in_flight, why):
    spec = one(make(tmp_path, "m", "engine=Python", *settings, model_py=text))
    assert spec.handler.settings.get("in_flight") == in_flight
    assert all("is read as not set" in finding.found for finding in spec.reports)
    if in_flight:
        assert why in str(spec.origin["handler.settings[in_flight]"])


def test_an_asynchronous_handler_gets_requests_one_by_one(tmp_path):
    spec = one(make(tmp_path, "m", "batch_size=8", model_py=ASYNC))
    assert spec.batching == Batching()
    assert spec.origin["batching.max_rows"].file == "handle in model.py is an async function"
    (report,) = spec.reports
    assert (report.key, report.line) == ("batch_size", 1)
    assert "one by one" in report.found


def test_a_bound_without_an_asynchronous_handler_is_reported(tmp_path):
    (report,) = one(make(tmp_path, "m", "trivium_in_flight=8", model_py=HANDLER)).reports
    assert "has no effect" in report.found


# -- archives and stores ----------------------------------------------------------------------------------


def test_an_archive_is_unpacked_and_named_after_its_file(tmp_path):
    folder = make(tmp_path, "m", "engine=Python", model_py=HANDLER)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    defaults = replace(DEFAULTS, scratch=scratch)
    for archive in (zipped(folder, tmp_path / "a-b.zip"), zipped(folder, tmp_path / "c-d.zip", "inner/")):
        spec = one(archive, defaults)
        assert spec.name == archive.stem.replace("-", "_")
        assert scratch in spec.root.parents
        assert (spec.root / spec.entry).read_text() == HANDLER
        assert spec.handler.directory == spec.root
    with tarfile.open(tmp_path / "net.tar.gz", "w:gz") as opened:
        opened.add(folder / "model.py", "net.py")
    assert one(tmp_path / "net.tar.gz", defaults).entry == "net.py"
    (fault,) = faults(tmp_path / "a-b.zip")
    assert "Unpack it" in fault.hint


def test_a_store(tmp_path):
    store = tmp_path / "store"
    folder = make(store, "a-b", model_py=HANDLER)
    make(store, "a.b", model_py=HANDLER)
    make(store, "broken", "engine=zzz")
    make(store, "theirs", model_py=TORCHSERVE)
    make(store, "empty")
    zipped(folder, store / "z.zip")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    reading = FORMAT.read(store, replace(DEFAULTS, scratch=scratch))
    assert sorted(spec.name for spec in reading.specs) == ["a_b", "z"]
    assert sorted(broken.name for broken in reading.unreadable) == ["a_b", "broken", "theirs"]
    assert "a second model named 'a_b'" in str(reading.unreadable[0].findings[0])


def test_a_store_of_one_and_a_model_with_a_folder_around_it(tmp_path):
    make(tmp_path / "one", "m", model_py=HANDLER)
    assert one(tmp_path / "one").name == "m"
    make(tmp_path / "store" / "a", "inner", model_py=HANDLER)
    spec = one(tmp_path / "store")
    assert (spec.name, spec.root) == ("a", tmp_path / "store" / "a" / "inner")


def test_a_path_that_went_away(tmp_path):
    for name in ("gone", "gone.zip"):
        reading = FORMAT.read(tmp_path / name, DEFAULTS)
        assert reading.specs == ()
        assert "No such file" in str(reading.unreadable[0].findings[0])


def test_the_current_folder_has_a_name(tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(make(tmp_path, "m", model_py=HANDLER))
    assert FORMAT.read(Path(), DEFAULTS).specs[0].name == "m"


def test_facts_complete_a_native_model(tmp_path):
    spec = one(make(tmp_path, "m", model_onnx=""))
    x = TensorSpec("x", DataType.FP32, (-1, 4))
    done = FORMAT.finish(spec, ModelFacts((x,), (x,), True))
    assert (done.inputs, done.outputs) == ((x,), (x,))
    assert done.batching == Batching()
    assert str(done.origin["inputs[0].dims"]) == "the model file model.onnx"
