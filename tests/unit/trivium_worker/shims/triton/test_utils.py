"""pb_utils beside requests and responses: metrics, log lines, other models, configurations, plain functions."""

from typing import Any

import numpy as np
import pytest
from tests.harness.triton_child import HEAD, TritonChildHarness, stage

from trivium_worker.wire.values import Failure

__all__ = ["stage"]


@pytest.fixture
def pb_utils(stage: TritonChildHarness) -> Any:
    """The module, in a worker whose model is loaded."""
    stage.load(HEAD + "class TritonPythonModel:\n    pass\n")
    import triton_python_backend_utils

    return triton_python_backend_utils


# -- metrics -----------------------------------------------------------------------------------------------


def test_a_counter(stage: TritonChildHarness, pb_utils: Any) -> None:
    family = pb_utils.MetricFamily("seen", "Things seen.", pb_utils.MetricFamily.COUNTER)
    metric = family.Metric({"kind": "cat"})
    metric.increment(2)
    same = pb_utils.MetricFamily(name="seen", description="Again.", kind=pb_utils.MetricFamily.COUNTER)
    again = same.Metric(labels={"kind": "cat"})
    again.increment(1.5)
    assert (metric.value(), again.value()) == (3.5, 3.5)
    about = {"kind": "counter", "name": "seen", "help": "Things seen.", "labels": {"kind": "cat"}}
    assert stage.host.measured[:2] == [{**about, "add": 0.0}, {**about, "add": 2.0}]
    less = "increment metric value: .*COUNTER can only be incremented monotonically by non-negative values."
    for call, said in (
        (lambda: metric.increment(-1), less),
        (lambda: metric.set(3), "set metric value: .*TRITONSERVER_METRIC_KIND_COUNTER does not support Set"),
        (lambda: metric.observe(1), "observe metric value: .*COUNTER does not support Observe"),
    ):
        with pytest.raises(pb_utils.TritonModelException, match=f"^Failed to {said}$"):
            call()


def test_a_gauge(stage: TritonChildHarness, pb_utils: Any) -> None:
    metric = pb_utils.MetricFamily("level", "", pb_utils.MetricFamily.GAUGE).Metric()
    metric.set(5)
    metric.increment(-2)
    assert (metric.value(), type(metric.value())) == (3, float)
    assert [{key: row[key] for key in row if key in ("set", "add")} for row in stage.host.measured] == [
        {"set": 5.0},
        {"add": -2.0},
    ]
    with pytest.raises(pb_utils.TritonModelException, match="GAUGE does not support Observe"):
        metric.observe(1)


def test_a_histogram(stage: TritonChildHarness, pb_utils: Any) -> None:
    metric = pb_utils.MetricFamily("sizes", "", pb_utils.MetricFamily.HISTOGRAM).Metric(buckets=[1, 10])
    metric.observe(3)
    (row,) = stage.host.measured
    assert (row["buckets"], row["observe"]) == ([1.0, 10.0], 3.0)
    for call in (lambda: metric.increment(1), lambda: metric.set(1), metric.value):
        with pytest.raises(pb_utils.TritonModelException, match="KIND_HISTOGRAM does not support"):
            call()


@pytest.mark.parametrize(
    ("kind", "labels", "buckets", "said"),
    [
        ("COUNTER", [1], None, "Labels must be a dictionary."),
        ("COUNTER", {"a": 1}, None, "message: attempt to access JSON non-string as string"),
        ("COUNTER", {"a b": "c"}, None, "^Error when creating Metric: .* message: Invalid label name$"),
        ("COUNTER", {"__a": "c"}, None, "Invalid label name"),
        ("HISTOGRAM", None, [2.0, 1.0], "Bucket Boundaries must be strictly sorted"),
        ("COUNTER", None, [1.0], "Unexpected buckets found."),
        ("HISTOGRAM", None, (1.0,), "Buckets must be a list."),
        ("HISTOGRAM", None, None, "Missing required buckets."),
    ],
)
def test_metrics_that_cannot_be_made(pb_utils: Any, kind: str, labels: Any, buckets: Any, said: str) -> None:
    family = pb_utils.MetricFamily("f", "", getattr(pb_utils.MetricFamily, kind))
    with pytest.raises(pb_utils.TritonModelException, match=said):
        family.Metric(labels, buckets)


def test_families_that_cannot_be_made(pb_utils: Any) -> None:
    pb_utils.MetricFamily("f", "", pb_utils.MetricFamily.GAUGE)
    with pytest.raises(pb_utils.TritonModelException, match="already exists with different type"):
        pb_utils.MetricFamily("f", "", pb_utils.MetricFamily.COUNTER)
    for name in ("", "a b", "1a", "__a", "\u00fc"):
        with pytest.raises(
            pb_utils.TritonModelException, match=r"^Error when creating MetricFamily: .* metric name$"
        ):
            pb_utils.MetricFamily(name, "", pb_utils.MetricFamily.GAUGE)
    with pytest.raises(TypeError, match=r"kind is a int; expected MetricFamily\.COUNTER, GAUGE or HISTOGRAM"):
        pb_utils.MetricFamily("f", "", 0)


@pytest.mark.parametrize("value", ["3", None, [1]])
def test_what_is_no_number(stage: TritonChildHarness, pb_utils: Any, value: Any) -> None:
    metric = pb_utils.MetricFamily("level", "", pb_utils.MetricFamily.GAUGE).Metric()
    with pytest.raises(TypeError, match=r"Metric\.set: value is a .*; expected a number"):
        metric.set(value)
    assert (metric.value(), stage.host.measured) == (0.0, [])


# -- log lines ---------------------------------------------------------------------------------------------


def test_log_lines_say_where_they_were_written(stage: TritonChildHarness) -> None:
    logger = "pb_utils.Logger"
    lines = (
        f"{logger}.log('a')",
        f"{logger}.log('b', {logger}.WARNING)",
        f"{logger}.log(message='c', level={logger}.LogLevel.ERROR)",
        f"{logger}.log_info('d')",
        f"{logger}.log_warn('e')",
        f"{logger}.log_error('f')",
        f"{logger}.log_verbose('g')",
    )
    stage.load(HEAD + "\n".join(lines) + "\nclass TritonPythonModel:\n    pass\n")
    levels = ("info", "warning", "error", "info", "warning", "error", "debug")
    expected = [
        (level, f"model.py:{n}] {text}")
        for n, (level, text) in enumerate(zip(levels, "abcdefg", strict=True), 3)
    ]
    assert stage.host.lines == expected


def test_what_is_no_log_line(pb_utils: Any) -> None:
    with pytest.raises(TypeError, match="message is a int"):
        pb_utils.Logger.log_info(3)
    with pytest.raises(TypeError, match="level is 7"):
        pb_utils.Logger.log("a", 7)


# -- functions ---------------------------------------------------------------------------------------------


def test_parts_of_a_configuration_by_name(pb_utils: Any) -> None:
    config = {"input": [{"name": "a", "dims": [1]}], "output": [{"name": "b"}]}
    assert pb_utils.get_input_config_by_name(config, "a") == {"name": "a", "dims": [1]}
    assert pb_utils.get_input_config_by_name(config, "b") is None
    assert pb_utils.get_output_config_by_name(config, "b") == {"name": "b"}
    assert pb_utils.get_output_config_by_name({}, "b") is None
    assert not pb_utils.using_decoupled_model_transaction_policy(config)
    assert pb_utils.using_decoupled_model_transaction_policy(
        {"model_transaction_policy": {"decoupled": True}}
    )


def test_datatypes(pb_utils: Any) -> None:
    assert pb_utils.triton_string_to_numpy("TYPE_FP32") is np.float32
    assert pb_utils.triton_string_to_numpy("TYPE_BOOL") is bool
    with pytest.raises(KeyError):
        pb_utils.triton_string_to_numpy("TYPE_BF16")
    numbers = [
        pb_utils.numpy_to_triton_type(pb_utils.triton_to_numpy_type(number)) for number in range(1, 14)
    ]
    assert numbers == list(range(1, 14))
    assert pb_utils.triton_to_numpy_type(14) is None
    assert pb_utils.numpy_to_triton_type(np.bytes_) == 13
    assert pb_utils.numpy_to_triton_type(np.complex64) is None


def test_byte_tensors(pb_utils: Any) -> None:
    encoded = pb_utils.serialize_byte_tensor(np.array([[b"a\0"], ["\u00fc"], [7]], dtype=object))
    assert encoded == b"\2\0\0\0a\0\2\0\0\0\xc3\xbc\1\0\0\0007"
    assert pb_utils.deserialize_bytes_tensor(encoded).tolist() == [b"a\0", "\u00fc".encode(), b"7"]
    assert pb_utils.serialize_byte_tensor(np.array([b"ab"])) == b"\2\0\0\0ab"
    assert pb_utils.serialize_byte_tensor(np.array([], dtype=object)) == ()
    assert pb_utils.serialize_byte_tensor(np.array([1])) is None
    for cut in (encoded[:-1], encoded[:2]):
        with pytest.raises(pb_utils.TritonModelException, match="ends within an element"):
            pb_utils.deserialize_bytes_tensor(cut)


# -- configurations ----------------------------------------------------------------------------------------


def test_a_configuration_is_completed(pb_utils: Any) -> None:
    config = pb_utils.ModelConfig(
        '{"name": "m", "max_batch_size": 0, "input": [{"name": "a", "data_type": "TYPE_INVALID",'
        ' "dims": []}], "output": []}'
    )
    config.set_max_batch_size(4)
    config.add_input({"name": "a", "data_type": "TYPE_FP32", "dims": [2], "optional": True})
    config.add_output({"name": "b", "data_type": "TYPE_FP32", "dims": [-1]})
    config.set_dynamic_batching()
    config.set_model_transaction_policy({"decoupled": True})
    assert config.as_dict() == {
        "name": "m",
        "max_batch_size": 4,
        "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [2], "optional": True}],
        "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [-1]}],
        "dynamic_batching": {},
        "model_transaction_policy": {"decoupled": True},
    }


FUNCTION = "auto-complete-config function for model 'm'"


@pytest.mark.parametrize(
    ("call", "argument", "said"),
    [
        (
            "set_max_batch_size",
            4,
            f"configuration specified max_batch_size 8, but in {FUNCTION} specified max_batch_size 4",
        ),
        (
            "set_model_transaction_policy",
            {"decoupled": True},
            "trying to change decoupled property in auto-complete-config for model 'm', which is already set to "
            "'False'.",
        ),
        (
            "set_model_transaction_policy",
            {"other": True},
            f"model transaction property in {FUNCTION} contains property other than 'decoupled'.",
        ),
        (
            "add_input",
            {"name": "a", "data_type": "TYPE_INT8", "dims": [2]},
            "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'a', model provides "
            "TYPE_INT8",
        ),
        (
            "add_input",
            {"name": "a", "data_type": "TYPE_FP32", "dims": [3]},
            "model 'm', tensor 'a': the model expects dims [3] but the model configuration specifies dims [2]",
        ),
        (
            "add_input",
            {"name": "a", "data_type": "TYPE_FP32", "dims": [2], "optional": True},
            "model 'm', tensor 'a': the model expects optional True but the model configuration specifies optional "
            "False",
        ),
        (
            "add_input",
            {"name": "c", "data_type": "TYPE_FP32"},
            f"input 'c' in {FUNCTION} is missing 'dims' property.",
        ),
        (
            "add_input",
            {"data_type": "TYPE_FP32", "dims": [1]},
            f"input in {FUNCTION} is missing 'name' property.",
        ),
        (
            "add_output",
            {"name": "c", "data_type": "TYPE_FP32", "dims": [1], "optional": True},
            f"output 'c' in {FUNCTION} contains property other than 'name', 'data_type' and 'dims'.",
        ),
    ],
)
def test_a_configuration_that_is_contradicted(pb_utils: Any, call: str, argument: Any, said: str) -> None:
    """In the words of the original, beside which they were observed."""
    config = pb_utils.ModelConfig(
        '{"name": "m", "max_batch_size": 8, "model_transaction_policy": {"decoupled": false}, "input": '
        '[{"name": "a", "data_type": "TYPE_FP32", "dims": [2], "optional": false}]}'
    )
    with pytest.raises(ValueError) as caught:
        getattr(config, call)(argument)
    assert str(caught.value) == said


@pytest.mark.parametrize("scheduler", ["sequence_batching", "ensemble_scheduling"])
def test_one_scheduler_only(pb_utils: Any, scheduler: str) -> None:
    config = pb_utils.ModelConfig(f'{{"name": "m", "{scheduler}": {{}}}}')
    with pytest.raises(ValueError, match="tries to set scheduling_choice as 'dynamic_batching'"):
        config.set_dynamic_batching()


# -- other models ------------------------------------------------------------------------------------------


def test_a_model_is_loaded_with_another_configuration_and_files(
    stage: TritonChildHarness, pb_utils: Any
) -> None:
    pb_utils.load_model("a", config="{}", files={"file:1/model.py": b"\0\xff"})
    asked = {"model": "a", "config": "{}", "files": {"1/model.py": "AP8="}}
    assert stage.host.asked == [("load", asked)]


def test_models_are_loaded_unloaded_and_asked_after(stage: TritonChildHarness, pb_utils: Any) -> None:
    stage.host.replies["ready"] = {"ready": True, "reason": ""}
    assert pb_utils.is_model_ready("a", "2") is True
    pb_utils.load_model("a")
    pb_utils.unload_model(model_name="a", unload_dependents=True)
    assert stage.host.asked == [
        ("ready", {"model": "a", "version": "2"}),
        ("load", {"model": "a"}),
        ("unload", {"model": "a", "with_dependents": True}),
    ]
    stage.host.replies = {
        "ready": Failure("unknown", "not found"),
        "load": Failure("broken", "load failed"),
    }
    assert pb_utils.is_model_ready("b") is False
    with pytest.raises(
        pb_utils.TritonModelException, match=r"^Failed to load model: .* 'm_0_0', message: broken$"
    ):
        pb_utils.load_model("b")
    with pytest.raises(pb_utils.TritonModelException, match="expected 'file:' and its path"):
        pb_utils.load_model("b", files={"1/model.onnx": b""})
    stage.host.replies["ready"] = Failure("draining", "draining")
    with pytest.raises(
        pb_utils.TritonModelException, match=r"^Failed to check model readiness: .*: draining$"
    ):
        pb_utils.is_model_ready("b")
    stage.host.replies["unload"] = Failure("unknown", "not found")
    pb_utils.unload_model("b")  # there is nothing to stop
    stage.host.replies["unload"] = Failure("draining", "draining")
    with pytest.raises(pb_utils.TritonModelException, match=r"^Failed to unload model: .*: draining$"):
        pb_utils.unload_model("b")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("load_model", (3,)),
        ("load_model", ("a", 3)),
        ("load_model", ("a", "", {1: b""})),
        ("load_model", ("a", "", {"file:1/x": "text"})),
        ("unload_model", (None,)),
        ("is_model_ready", (3,)),
        ("is_model_ready", ("a", 3)),
        ("PreferredMemory", (1,)),
        ("TritonError", (3,)),
    ],
)
def test_what_is_of_a_wrong_type_stays_here(
    stage: TritonChildHarness, pb_utils: Any, name: str, arguments: tuple[object, ...]
) -> None:
    """The server would take it for garbage, and end the worker."""
    with pytest.raises(TypeError, match="expected"):
        getattr(pb_utils, name)(*arguments)
    assert stage.host.asked == []


def test_versions_are_read_by_their_beginning(stage: TritonChildHarness, pb_utils: Any) -> None:
    stage.host.replies["ready"] = {"ready": True, "reason": ""}
    for told in ("", " 1", "1.5", "03"):
        assert pb_utils.is_model_ready("a", told)
    assert [fields["version"] for _, fields in stage.host.asked] == ["", "1", "1", "3"]
    for told, why in (
        ("x", r"'x' \(details: stol\), version"),
        ("-1", "'-1', version should be an integral value > 0"),
    ):
        with pytest.raises(pb_utils.TritonModelException, match=why):
            pb_utils.is_model_ready("a", told)
    assert not pb_utils.is_model_ready("")
    with pytest.raises(pb_utils.TritonModelException, match="files should be a dictionary"):
        pb_utils.load_model("a", files=[1])


def test_names_are_printed_as_the_original_does(pb_utils: Any) -> None:
    code = pb_utils.TritonError("e", pb_utils.TritonError.NOT_FOUND).code()
    assert (f"{code}", str(code), repr(code), int(code)) == (
        "__ErrorCode.NOT_FOUND",
        "__ErrorCode.NOT_FOUND",
        "<__ErrorCode.NOT_FOUND: 2>",
        2,
    )
    assert f"{pb_utils.Logger.ERROR}" == "LogLevel.ERROR"
    assert pb_utils.TritonModelException.__module__ == "c_python_backend_utils"
