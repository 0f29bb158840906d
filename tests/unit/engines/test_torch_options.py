"""The parameters of a TorchScript model: its own, those of the whole process, and those that mean nothing."""

import logging
from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.torch.options import KNOWN, Options, ProcessSettings, options
from trivium.settings.parameters import unknown_parameters
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Origin


class Torch:
    """Notes what is asked of it."""

    def __init__(self):
        self.asked = []
        self.backends = self.cudnn = self._C = self

    def __getattr__(self, name):
        return lambda value: self.asked.append((name, value))

    def __setattr__(self, name, value):
        if name == "enabled":
            self.asked.append((name, value))
        else:
            super().__setattr__(name, value)


def spec(name="m", **parameters):
    return replace(make_spec(), name=name, parameters=parameters)


def test_own_options():
    assert options(spec()) == Options()
    assert options(
        spec(
            INFERENCE_MODE="false",
            DISABLE_OPTIMIZED_EXECUTION="TRUE",
            ENABLE_WEIGHT_SHARING="1",
            ENABLE_CACHE_CLEANING=" true ",
        )
    ) == Options(False, False, True, True)


def test_switches_of_the_process():
    torch = Torch()
    ProcessSettings().apply(
        torch,
        spec(
            DISABLE_CUDNN="true",
            ENABLE_JIT_EXECUTOR="false",
            ENABLE_JIT_PROFILING="0",
            ENABLE_TENSOR_FUSER="true",
            INTRA_OP_THREAD_COUNT="2",
            INTER_OP_THREAD_COUNT="3",
        ),
    )
    assert torch.asked == [
        ("enabled", False),
        ("_jit_set_profiling_executor", False),
        ("_jit_set_profiling_mode", False),
        ("_jit_set_texpr_fuser_enabled", True),
        ("set_num_interop_threads", 3),
        ("set_num_threads", 2),
    ]


def test_what_is_not_said_is_left_alone():
    torch = Torch()
    ProcessSettings().apply(torch, spec())
    assert torch.asked == []


def test_models_that_disagree_are_named(caplog):
    torch, settings = Torch(), ProcessSettings()
    for name, count in (("a", "2"), ("a", "2"), ("b", "2"), ("c", "4")):
        settings.apply(torch, spec(name, INTRA_OP_THREAD_COUNT=count))
    assert torch.asked == [("set_num_threads", 2), ("set_num_threads", 4)]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    text = record.getMessage()
    assert "INTRA_OP_THREAD_COUNT is 4 for model 'c' and was 2 for model 'a'" in text


def test_what_torch_does_not_take_any_more_is_warned_of(caplog):
    torch = Torch()

    def refuse(count):
        raise RuntimeError("too late")

    torch.set_num_interop_threads = refuse
    ProcessSettings().apply(torch, spec(INTER_OP_THREAD_COUNT="2"))
    assert "INTER_OP_THREAD_COUNT of model 'm' changes nothing" in caplog.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("INFERENCE_MODE", "yes"),
        ("ENABLE_TENSOR_FUSER", ""),
        ("INTRA_OP_THREAD_COUNT", "0"),
        ("INTRA_OP_THREAD_COUNT", "-1"),
        ("INTER_OP_THREAD_COUNT", "2.5"),
        ("INTER_OP_THREAD_COUNT", "99999999999999999999"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_place(name, text):
    one = spec(**{name: text})
    one = replace(one, origin={f"parameters[{name}]": Origin("config.pbtxt", "parameters", 7)})
    use = options if name == "INFERENCE_MODE" else lambda spec: ProcessSettings().apply(Torch(), spec)
    with pytest.raises(ServeError) as caught:
        use(one)
    assert caught.value.code is Code.LOAD_FAILED
    assert f"parameter '{name}' is '{text}' (config.pbtxt:7 (parameters)); expected" in caught.value.message


def test_unknown_parameters_are_noted():
    notes = unknown_parameters({**dict.fromkeys(KNOWN, "1"), "THREADS": "1"}, "torch", KNOWN)
    assert len(notes) == 1
    assert notes[0].startswith("parameter 'THREADS' has no meaning to engine 'torch' and changes nothing")
