"""What holds where a request, a file, an environment and a server's defaults set the same key."""

import pytest

from trivium.codecs.java_properties import Properties, read
from trivium.servers.djl.words.engines import PYTHON
from trivium.servers.djl.words.judging import judge
from trivium.servers.djl.words.layers import VARIABLES, from_environment, layered, threads_of
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin

FILE = "serving.properties"


def settings(value: str, file: str = "a request", key: str = "") -> SourceSetting:
    return SourceSetting(value, Origin(file, key))


def lay(text: str, source: ModelSource, **under: str) -> Properties:
    return layered(read(FILE, text.encode()), source, {key: settings(value) for key, value in under.items()})


def values(properties: Properties) -> dict[str, str]:
    return {key: entry.value for key, entry in properties.entries.items()}


@pytest.mark.parametrize(
    ("over", "file", "source_under", "under", "holds"),
    [
        ("8", "4", "2", "1", "8"),
        (None, "4", "2", "1", "4"),
        (None, None, "2", "1", "2"),
        (None, None, None, "1", "1"),
    ],
)
def test_the_nearest_wins(
    over: str | None, file: str | None, source_under: str | None, under: str, holds: str
) -> None:
    source = ModelSource(
        "m",
        over={} if over is None else {"batch_size": settings(over)},
        under={} if source_under is None else {"batch_size": settings(source_under)},
    )
    found = lay("" if file is None else f"batch_size={file}", source, batch_size=under)
    assert values(found) == {"batch_size": holds}


def test_the_other_spelling_in_a_file_is_not_overruled_from_below() -> None:
    assert values(lay("max_dynamic_batch_size=4", ModelSource("m"), batch_size="2")) == {
        "max_dynamic_batch_size": "4"
    }
    assert "batch_size" in values(lay("batch_size=", ModelSource("m"), batch_size="2"))


def test_a_count_that_is_asked_for_holds_on_every_device() -> None:
    source = ModelSource("m", over={"minWorkers": settings("3")})
    found = values(lay("gpu.minWorkers=1\nminWorkers=2\ngpu.maxWorkers=4", source))
    assert found == {"gpu.maxWorkers": "4", "minWorkers": "3"}


def test_engine_and_devices_are_wishes() -> None:
    source = ModelSource("m", engine="PyTorch", devices=("cpu", "gpu0"))
    found = lay("engine=Python\nload_on_devices=*", source)
    assert values(found) == {"engine": "PyTorch", "load_on_devices": "cpu;gpu0"}


def test_a_fault_names_where_the_value_came_from() -> None:
    source = ModelSource("m", over={"batch_size": settings("x", "the query")})
    faults = judge(lay("job_queue_size=y", source, max_batch_delay="z"), PYTHON)
    assert sorted((finding.key, finding.file, finding.line) for finding in faults) == [
        ("batch_size", "the query", None),
        ("job_queue_size", FILE, 1),
        ("max_batch_delay", "a request", None),
    ]


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({}, 1),
        ({"NO_OMP_NUM_THREADS": "1"}, 0),
        ({"NO_OMP_NUM_THREADS": ""}, 1),
        ({"OMP_NUM_THREADS": "4"}, 4),
        ({"OMP_NUM_THREADS": "4", "NO_OMP_NUM_THREADS": "1"}, 4),
        ({"OMP_NUM_THREADS": "0"}, 0),
        ({"OMP_NUM_THREADS": "many"}, 0),
    ],
)
def test_threads_are_those_that_the_launcher_leaves(variables: dict[str, str], threads: int) -> None:
    assert threads_of(variables) == threads


def test_the_environment_is_read_as_djl_reads_it() -> None:
    found = from_environment(
        {
            "OPTION_MODEL_ID": "a/b",
            "OPTION_ENTRYPOINT": "x.py",
            "OPTION_mapLocation": "true",
            "OPTION_ENGINE": "Python",
            "OPTION_": "nothing",
            "OPTION_EMPTY": "",
            "ARGS_TOPK": "3",
            "ARGS_topK": "4",
            "SERVING_BATCH_SIZE": "2",
            "PATH": "/bin",
        }
    )
    assert {key: setting.value for key, setting in found.items()} == {
        "option.model_id": "a/b",
        "option.entryPoint": "x.py",
        "option.mapLocation": "true",
        "engine": "Python",
        "topk": "3",
        "topK": "4",
        "batch_size": "2",
    }
    assert found["topk"].origin == Origin("the environment", "ARGS_TOPK")


def test_hugging_faces_own_variable_trusts_unless_the_option_says_otherwise():
    told = from_environment({"HF_TRUST_REMOTE_CODE": "true"})["option.trust_remote_code"]
    assert (told.value, told.origin.key) == ("true", "HF_TRUST_REMOTE_CODE")
    both = from_environment({"HF_TRUST_REMOTE_CODE": "true", "OPTION_TRUST_REMOTE_CODE": "false"})
    assert both["option.trust_remote_code"].value == "false"


def test_the_names_of_lmi_and_sagemaker_lie_behind_the_options_own():
    def told(**variables):
        return {key: one.value for key, one in from_environment(variables).items()}

    degree = "option.tensor_parallel_degree"
    assert told(SM_NUM_GPUS="2") == {degree: "2"}
    assert told(SM_NUM_GPUS="2", TENSOR_PARALLEL_DEGREE="max") == {degree: "max"}
    assert told(TENSOR_PARALLEL_DEGREE="max", OPTION_TENSOR_PARALLEL_DEGREE="4") == {degree: "4"}
    assert told(SAGEMAKER_NUM_MODEL_WORKERS="3") == {"minWorkers": "3", "maxWorkers": "3"}
    assert told(HF_MODEL_TRUST_REMOTE_CODE="true") == {"option.trust_remote_code": "true"}
    assert told(SAGEMAKER_STARTUP_TIMEOUT="9", SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS="8") == {
        "option.model_loading_timeout": "9",
        "option.predict_timeout": "8",
    }
    assert told(SM_NUM_GPUS=" ") == told(SM_NUM_GPUS="0") == {}
    assert all(from_environment({name: "1"}).keys() == set(keys) for name, keys in VARIABLES.items())
