"""The pages that TorchServe's users begin with, command by command: getting started, custom handlers, batching,
metrics, and model-config.yaml.

The commands are the pages', on the ports that they name, in a network of its own; small seeded weights take the place
of what they fetch, and handlers of the same shape that of their handlers. Archives are made by the real archiver.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from tests.fixtures import boxes
from tests.harness.commands import trivium
from tests.harness.server_process import environment
from tests.harness.torchserve_command import TorchServeFolder, torchserve

HANDLERS = Path(__file__).parent / "torchserve_pages"
PROTO = Path(__file__).parent / "torchserve_client"
ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]
SECONDS = 300
STOPPED = "torchserve --stop --foreground"
RUN = f"""
import json, subprocess
found = []
try:
    for at, command in enumerate(json.load(open("commands.json"))):
        with open(f"printed.{{at}}", "wb") as file:  # what is left running holds it open, which of a pipe has no end
            subprocess.run(["bash", "-c", command], stdout=file, stderr=subprocess.STDOUT, timeout=120)
        found.append(open(file.name).read())
finally:
    subprocess.run({STOPPED.split()!r}, timeout=60)
json.dump(found, open("found.json", "w"))
"""
ARCHIVE = "torch-model-archiver --force --export-path model_store --model-name"
DENSENET = (
    "--model-file ./serve/examples/image_classifier/densenet_161/model.py "
    "--serialized-file densenet161-8d451a50.pth "
    "--extra-files ./serve/examples/image_classifier/index_to_name.json"
)
KITTEN = {
    "lynx": 0.2551937,
    "plastic_bag": 0.2282854,
    "tabby": 0.1967634,
    "tiger_cat": 0.1762139,
    "Egyptian_cat": 0.1435435,
}


class Doubled(torch.nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows * 2


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files that the pages fetch, handlers, and the commands linked."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network of its own")
    boxes.torchserve(tmp_path)
    shutil.rmtree(tmp_path / "model_store")
    for handler in HANDLERS.iterdir():
        if handler.is_file():
            shutil.copy(handler, tmp_path)
    torch.jit.script(Doubled()).save(tmp_path / "doubled.pt")  # type: ignore[no-untyped-call]
    assert trivium("link", tmp_path / "bin").returncode == 0
    return tmp_path


def follow(place: Path, *commands: str) -> Sequence[str]:
    """Run commands one after the other, and return what each has printed. What is left running is stopped."""
    (place / "commands.json").write_text(json.dumps(commands))
    path = os.pathsep.join([str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", RUN],
        cwd=place,
        env={**environment(), "PATH": path, "TMPDIR": str(place), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: Sequence[str] = json.loads((place / "found.json").read_text())
    return found


def has_kitten(said: str, count: int = 1) -> bool:
    """Does it have the classes of the picture, so many times, and nothing else?"""
    answers = [json.loads(text) for text in re.findall(r"\{[^}]*\}", said)]
    return [{name: pytest.approx(value, abs=1e-5) for name, value in KITTEN.items()}] * count == answers


def test_getting_started(place: Path) -> None:
    (place / "ts_scripts").mkdir()
    shutil.copy(place / "page_client.py", place / "ts_scripts" / "torchserve_grpc_client.py")
    key = "$(python -c \"import json; print(json.load(open('key_file.json'))['inference']['key'])\")"
    found = follow(
        place,
        "mkdir model_store",
        f"torch-model-archiver --model-name densenet161 --version 1.0 {DENSENET} --export-path model_store "
        "--handler image_classifier",
        "torchserve --start --ncs --model-store model_store --models densenet161.mar",
        "curl -s http://127.0.0.1:8080/predictions/densenet161 -T kitten_small.jpg",
        f'curl -s -H "Authorization: Bearer {key}" http://127.0.0.1:8080/predictions/densenet161 '
        "-T kitten_small.jpg",
        f"python -m grpc_tools.protoc --proto_path={PROTO} --python_out=ts_scripts "
        f"--grpc_python_out=ts_scripts {PROTO}/inference.proto {PROTO}/management.proto",
        f'python ts_scripts/torchserve_grpc_client.py infer densenet161 kitten_small.jpg --auth-token "{key}"',
        "torchserve --stop",
    )
    _, packed, started, keyless, predicted, stubs, called, stopped = found
    assert (packed, stubs) == ("", "")
    assert "Model server started." in started
    assert json.loads(keyless)["type"] == "InvalidKeyException"
    assert "--disable-token-auth" in started
    assert has_kitten(predicted), predicted
    assert has_kitten(called), called
    assert stopped == "TorchServe has stopped.\n"
    logs = place / "logs"
    assert {path.name for path in logs.iterdir()} >= {"access_log.log", "ts_log.log", "model_metrics.log"}
    assert '"PUT /predictions/densenet161 HTTP/1.1" 200' in (logs / "access_log.log").read_text()


def test_custom_handlers(place: Path) -> None:
    picture = base64.b64encode((place / "kitten_small.jpg").read_bytes()).decode()
    (place / "picture.json").write_text(json.dumps({"picture": picture}))
    (place / "one_worker.properties").write_text("default_workers_per_model=1\n")
    weights = "--version 1.0 --serialized-file doubled.pt"
    ask = "curl -s http://127.0.0.1:8080"
    as_json = "-H 'Content-Type: application/json'"
    *packed, started, by_form, whole, explained, code, code_of_function, extended, two = follow(
        place,
        "mkdir model_store",
        f"{ARCHIVE} entry {weights} --handler entry:rows_of_numbers --runtime python3",
        f"{ARCHIVE} scratch {weights} --handler scratch.py",
        f"{ARCHIVE} refusing --version 1.0 --handler refusing.py",
        f"{ARCHIVE} refusing_function --version 1.0 --handler refusing_function.py",
        f"{ARCHIVE} extended --version 1.0 {DENSENET} --handler extended.py",
        f"{ARCHIVE} two --version 1.0 --handler two_classes.py",
        "torchserve --start --ncs --model-store model_store --models all --disable-token-auth "
        "--ts-config one_worker.properties",
        f"{ask}/predictions/entry -F 'data=[1, 2, 3]'",
        f"{ask}/predictions/scratch {as_json} -d '[1, 2, 3]'",
        f"{ask}/explanations/scratch {as_json} -d '{{\"numbers\": [1, 2, 3]}}'",
        f"{ask}/predictions/refusing -T entry.py -w ' %{{http_code}}'",
        f"{ask}/predictions/refusing_function -T entry.py -w ' %{{http_code}}'",
        f"{ask}/predictions/extended {as_json} -d @picture.json",
        f"{ask}/predictions/two -T entry.py; cat logs/ts_log.log",
    )
    assert packed == [""] * 7
    assert "Model server started." in started
    assert (json.loads(by_form), json.loads(whole), json.loads(explained)) == (
        [2, 4, 6],
        [2, 4, 6],
        [1, 2, 3],
    )
    for refused in (code, code_of_function):
        assert '"message": "Some Prediction Error"' in refused
        assert refused.endswith(" 513")
    assert list(json.loads(extended)) == ["lynx", "plastic_bag"]
    assert "found no function handle(data, context), and these classes: ModelHandler, Another" in two


BATCH = """
load_models=resnet-152-batch_v2.mar
models={\\
  "resnet-152-batch_v2": {\\
    "VERSION": {\\
        "defaultVersion": true,\\
        "marName": "resnet-152-batch_v2.mar",\\
        "minWorkers": 1,\\
        "maxWorkers": 1,\\
        "batchSize": 3,\\
        "maxBatchDelay": 5000,\\
        "responseTimeout": 120\\
    }\\
  }\\
}
"""


def test_batching(place: Path) -> None:
    (place / "config.properties").write_text(BATCH.replace("VERSION", "2.0"))
    (place / "empty.properties").write_text("")
    (place / "other.properties").write_text(BATCH.replace("VERSION", "1.0"))
    register = (
        "curl -s -X POST http://localhost:8081/models?batch_size=3&max_batch_delay=10&initial_workers=1&url="
    )
    register = register.replace("http", '"http') + '{}"'
    fetched = "https://torchserve.pytorch.org/mar_files/resnet-152-batch_v2.mar"
    predict = "curl -s http://localhost:8080/predictions/resnet-152-batch_v2 -T kitten_small.jpg"
    describe = "curl -s http://localhost:8081/models/resnet-152-batch_v2"
    start = "torchserve --start --model-store model_store --disable-token-auth"
    found = follow(
        place,
        "mkdir model_store",
        f"{ARCHIVE} resnet-152-batch_v2 --version 2.0 {DENSENET} --handler image_classifier",
        f"{start} --ncs --ts-config empty.properties",
        "curl -s localhost:8080/ping",
        register.format("resnet-152-batch_v2.mar"),
        STOPPED,
        f"{start} --ncs --ts-config empty.properties --enable-model-api",
        register.format(fetched),
        register.format("resnet-152-batch_v2.mar"),
        describe,
        predict,
        f"cat logs/ts_log.log; {STOPPED}",
        f"{start} --ncs --ts-config config.properties",
        f"{predict} & {predict} & {predict} & wait; {describe}; {STOPPED}",
        f"{start} --ncs --ts-config other.properties",
    )
    _, _, _, ping, off, _, _, remote, registered, told, predicted, log, _, together, other = found
    assert json.loads(ping) == {"status": "Healthy"}
    assert json.loads(off)["code"] == 405
    assert f"Given URL {fetched} does not match any allowed URL(s)" in remote
    assert "Its switch is enable_model_api." in log
    assert "let the operator allow its URL with allowed_urls" in log
    assert '"Version: 2.0 registered with 1 initial workers' in registered.replace('\\" ', '"')
    (described,) = json.loads(told)
    assert [described[key] for key in ("modelVersion", "batchSize", "maxBatchDelay", "maxWorkers")] == [
        "2.0",
        3,
        10,
        1,
    ]
    assert described["loadedAtStartup"] is False
    assert has_kitten(predicted), predicted
    answers, _, description = together.partition("[\n")
    assert has_kitten(answers, 3), together
    (described,) = json.loads("[" + description)
    assert [described[key] for key in ("batchSize", "maxBatchDelay", "loadedAtStartup")] == [3, 5000, True]
    assert "it is about version 1.0 of resnet-152-batch_v2; of 2.0, which is served, it says nothing" in other


METRICS = """
metrics_mode=prometheus
metrics_config=serve/examples/custom_metrics/metrics.yaml
model_metrics_auto_detect=DETECTS
models={"mnist": {"1.0": {"defaultVersion": true, "marName": "mnist.mar", "minWorkers": 1, "maxWorkers": 1}}}
"""
OWN = {
    "InferenceRequestCount": ((), 1),
    "InitializeCallCount": (("mnist", "Model"), 1),
    "PreprocessCallCount": (("mnist",), 1),
    "PostprocessCallCount": (("mnist", "Model"), 2),
    "RequestBatchSize": (("mnist",), 1),
    "SizeOfImage": (("mnist", "Model"), 0.5),
}
DETECTED = {
    "HandlerMethodTime": (("preprocess", "mnist", "Model"), 0.5),
    "DistanceInKM": (("there", "mnist", "Model"), 10),
    "ExamplePercentMetric": (("mnist", "Model"), 1),
}


def scraped(text: str) -> dict[str, tuple[tuple[str, ...], float]]:
    """The last sample of each metric that has one: its labels but for the host's and a bucket's, and its value."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith(("_sum", "_created")):
                labels = {
                    name: value for name, value in sample.labels.items() if name not in ("Hostname", "le")
                }
                found[family.name] = (tuple(labels.values()), sample.value)
    return found


def test_metrics(place: Path) -> None:
    folder = place / "serve" / "examples" / "custom_metrics"
    folder.mkdir()
    shutil.copy(place / "metrics.yaml", folder)
    (folder / "config.properties").write_text(METRICS.replace("DETECTS", "true"))
    (place / "declared.properties").write_text(METRICS.replace("DETECTS", "false"))
    (place / "by_variables.properties").write_text(
        "enable_envvars_config=true\nmetrics_config=metrics.yaml\n"
    )
    (place / "body").write_bytes(b"x" * 512)
    start = "torchserve --ncs --start --model-store model_store --models mnist=mnist.mar --disable-token-auth"
    predict = "curl -s http://127.0.0.1:8080/predictions/mnist -T body"
    ask = f"{predict} && curl -s http://127.0.0.1:8082/metrics; {STOPPED}"
    stop = f"{predict}; {STOPPED}; cat logs/model_metrics.log"
    found = follow(
        place,
        "mkdir model_store",
        f"{ARCHIVE} mnist --version 1.0 --handler measured.py",
        f"{start} --ts-config serve/examples/custom_metrics/config.properties",
        ask,
        f"{start} --ts-config declared.properties",
        ask,
        f"TS_METRICS_MODE=legacy TS_MODEL_METRICS_AUTO_DETECT=true {start} --ts-config by_variables.properties",
        f"{predict}; curl -s http://127.0.0.1:8082/metrics; {stop}",
    )
    everything, declared, legacy = (found[at].removeprefix("measured") for at in (3, 5, 7))
    values = scraped(everything)
    assert {name: values.get(name) for name in (*OWN, *DETECTED)} == {**OWN, **DETECTED}
    assert 'ExamplePercentMetric_bucket{ModelName="mnist",Level="Model",' in everything
    assert (
        "# HELP PostprocessCallCount Torchserve prometheus counter metric with unit: CallCount" in everything
    )
    values = scraped(declared)
    assert {name: values.get(name) for name in (*OWN, *DETECTED)} == {**OWN, **dict.fromkeys(DETECTED)}
    asked, _, lines = legacy.partition("measured")
    assert set(scraped(asked)) == {
        "ts_inference_requests",
        "ts_inference_latency_microseconds",
        "ts_queue_latency_microseconds",
    }
    for line in (
        "SizeOfImage.kB:0.5|#ModelName:mnist,Level:Model|#hostname:",
        "HandlerMethodTime.Milliseconds:0.5|#MethodName:preprocess,ModelName:mnist,Level:Model|#hostname:",
        "ExamplePercentMetric.Percent:50.0|#ModelName:mnist,Level:Model|#hostname:",
        "DistanceInKM.km:10.0|#Way:there,ModelName:mnist,Level:Model|#hostname:",
    ):
        assert line in lines, lines


MODEL_CONFIG = """
minWorkers: 1 # default: #CPU or #GPU
maxWorkers: 1
batchSize: 2
maxBatchDelay: 5000
responseTimeout: 60
deviceType: cpu
deviceIds: [0,1,2,3]
useVenv: Create python virtual environment when using python backend to install model dependencies
         (if enabled globally using install_py_dep_per_model=true)
pippy:
  rpc_timeout: 1800
  pp_group_size: 4
handler:
  own: [1, two]
"""
GANG = "parallelType: pp # pp: pipeline parallel\ntorchrun:\n  nproc-per-node: 2\n"


def test_model_config(place: Path) -> None:
    (place / "model-config.yaml").write_text(MODEL_CONFIG)
    (place / "gang.yaml").write_text(MODEL_CONFIG + GANG)
    predict = "curl -s http://127.0.0.1:8080/predictions/told -T entry.py"
    found = follow(
        place,
        "mkdir model_store",
        f"{ARCHIVE} told --version 1.0 --handler told.py --config-file model-config.yaml --archive-format no-archive",
        f"{ARCHIVE} gang --version 1.0 --handler told.py -c gang.yaml --archive-format tgz",
        "torchserve --start --ncs --model-store model_store --models all --disable-token-auth",
        f"{predict} > first & {predict}; wait; cat logs/ts_log.log",
        "curl -s http://127.0.0.1:8081/models/told",
    )
    answer, end = json.JSONDecoder().raw_decode(found[4])
    assert answer["batch"] == answer["size"] == 2
    assert answer["config"]["pippy"] == {"rpc_timeout": 1800, "pp_group_size": 4}
    assert answer["config"]["handler"] == {"own": [1, "two"]}
    (described,) = json.loads(found[5])
    assert [described[key] for key in ("minWorkers", "batchSize", "maxBatchDelay", "responseTimeout")] == [
        1,
        2,
        5000,
        60,
    ]
    for said in (
        "deviceIds: [0, 1, 2, 3], and there are 0 GPUs; the list is ignored",
        "is not true or false; it counts as absent",
        "parallelType: one model over several processes is not supported in this version",
        "torchrun: workers started by torchrun are not supported in this version",
    ):
        assert said in found[4][end:], said


REPORTED = """
disable_token_authorization=true
batch_size=4
max_batch_delay=200
load_models=markuplm=MarkupLM
models={"markuplm": {"1.0": {"defaultVersion": true, "marName": "MarkupLM.mar", "minWorkers": 1, "maxWorkers": 3,\\
"batchSize": 5, "maxBatchDelay": 200, "responseTimeout": 120}}}
"""


def test_batch_properties_that_people_reported_to_be_ignored_hold_or_are_told(tmp_path: Path) -> None:
    """pytorch/serve#2365: of a model under a name of its own all of `models` holds. pytorch/serve#64: what is no
    property of a server is said, with the place where it is one.
    """
    folder = TorchServeFolder(tmp_path)
    folder.model("MarkupLM", (HANDLERS / "told.py").read_text())
    with torchserve(folder, text=REPORTED) as server:
        server.serves("markuplm")
        (described,) = server.ask("Management", "GET", "/models/markuplm").document
        keys = ("minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout")
        assert [described[key] for key in keys] == [1, 3, 5, 200, 120]
        for name, key in (("batch_size", "batchSize"), ("max_batch_delay", "maxBatchDelay")):
            assert f"no property of a server: write {key} into a model-config.yaml" in server.said(), name
