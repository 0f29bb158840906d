"""Parameters become session options, by a table; what cannot be is named with its place."""

import onnxruntime
import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.onnx.options import (
    IN_DEVICE,
    KNOWN,
    OPTIONS,
    SHRINKS,
    run_options,
    session_options,
)
from trivium.settings.parameters import unknown_parameters
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Origin

LEVELS, MODES = onnxruntime.GraphOptimizationLevel, onnxruntime.ExecutionMode


def options(origin=None, **parameters):
    spec = make_spec(parameters=parameters, origin=origin or {})
    return session_options(onnxruntime.SessionOptions(), onnxruntime, spec)


SET = [
    ("intra_op_thread_count", "3", "intra_op_num_threads", 3),
    ("intra_op_thread_count", " 0 ", "intra_op_num_threads", 0),
    ("inter_op_thread_count", "2", "inter_op_num_threads", 2),
    ("execution_mode", "0", "execution_mode", MODES.ORT_SEQUENTIAL),
    ("execution_mode", "1", "execution_mode", MODES.ORT_PARALLEL),
    ("enable_mem_arena", "0", "enable_cpu_mem_arena", False),
    ("enable_mem_arena", "True", "enable_cpu_mem_arena", True),
    ("enable_mem_pattern", "false", "enable_mem_pattern", False),
    ("graph_level", "-1", "graph_optimization_level", LEVELS.ORT_ENABLE_BASIC),
    ("graph_level", "1", "graph_optimization_level", LEVELS.ORT_ENABLE_EXTENDED),
    ("graph_level", "2", "graph_optimization_level", LEVELS.ORT_DISABLE_ALL),
    ("graph_level", "0", "graph_optimization_level", LEVELS.ORT_ENABLE_ALL),
]


@pytest.mark.parametrize(("name", "text", "attribute", "value"), SET)
def test_set(name, text, attribute, value):
    assert getattr(options(**{name: text}), attribute) == value


@pytest.mark.parametrize(
    ("threads", "said", "count"), [(None, {}, 0), (2, {}, 2), (2, {"intra_op_thread_count": "5"}, 5)]
)
def test_threads_by_default(threads, said, count):
    spec = make_spec(parameters=said)
    found = session_options(onnxruntime.SessionOptions(), onnxruntime, spec, threads)
    assert found.intra_op_num_threads == count


def test_every_option_has_been_set():
    assert {name for name, *_ in SET} | {IN_DEVICE, "profile_output"} == {row.name for row in OPTIONS}


def test_initializers_may_lie_on_the_device():
    assert options(**{IN_DEVICE: "1"}).get_session_config_entry(IN_DEVICE) == "1"
    with pytest.raises(ServeError, match="expected one of 0, 1"):
        options(**{IN_DEVICE: "yes"})


def test_an_arena_may_shrink_after_every_run():
    found = run_options(onnxruntime, make_spec(parameters={SHRINKS: " cpu:0 "}))
    assert found.get_run_config_entry(SHRINKS) == "cpu:0"
    with pytest.raises(RuntimeError, match=SHRINKS):
        run_options(onnxruntime, make_spec()).get_run_config_entry(SHRINKS)


def test_the_log_of_the_runtime_is_quiet():
    assert options().log_severity_level == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("intra_op_thread_count", "many"),
        ("intra_op_thread_count", "-1"),
        ("intra_op_thread_count", "99999999999"),
        ("inter_op_thread_count", "1.5"),
        ("execution_mode", "2"),
        ("enable_mem_arena", "on"),
        ("graph_level", "high"),
    ],
)
def test_refused_with_its_place(name, text):
    with pytest.raises(ServeError) as caught:
        options({f"parameters[{name}]": Origin("config.pbtxt", "parameters", 7)}, **{name: text})
    assert caught.value.code is Code.LOAD_FAILED
    (expected,) = (row.kind.expected for row in OPTIONS if row.name == name)
    assert caught.value.message == (
        f"Model 'm': parameter '{name}' is '{text}' (config.pbtxt:7 (parameters)); expected {expected}."
    )


def test_unknown_parameters_are_told_and_known_ones_not():
    notes = unknown_parameters({"a": "1", "graph_level": "1", "b": "2"}, "onnx", KNOWN)
    assert [note.split("'")[1] for note in notes] == ["a", "b"]
