"""Which execution providers run a model: by where it runs, and by the accelerators that it asks for."""

import json
from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.onnx.providers import execution_providers, unused
from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, InstanceGroup, Isolation, Origin

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
ALL = [TENSORRT, CUDA, OPENVINO, CPU]
ON_CPU = Placement("m_0", Isolation.THREAD)
ON_GPU = Placement("m_0", Isolation.THREAD, Device.GPU, 3)


def asking(*names, device="gpu", parameters=(), origin=None, **others):
    told = [{"device": device, "name": name, "parameters": dict(parameters)} for name in names]
    return make_spec(parameters={"accelerators": json.dumps(told), **others}, origin=origin or {})


def test_without_accelerators_the_placement_decides():
    assert execution_providers(ALL, make_spec(), ON_CPU) == [CPU]
    assert execution_providers(ALL, make_spec(), ON_GPU) == [(CUDA, {"device_id": 3}), CPU]
    with pytest.raises(ServeError, match=r"has no CUDA \(it has CPUExecutionProvider\)"):
        execution_providers([CPU], make_spec(), ON_GPU)


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("cudnn_conv_algo_search", "0", "EXHAUSTIVE"),
        ("cudnn_conv_algo_search", " 2 ", "DEFAULT"),
        ("gpu_mem_limit", "1000", "1000"),
        ("arena_extend_strategy", "1", "kSameAsRequested"),
        ("do_copy_in_default_stream", "1", "1"),
    ],
)
def test_parameters_of_cuda(name, text, option):
    found = execution_providers(ALL, make_spec(parameters={name: text}), ON_GPU)
    assert found == [(CUDA, {"device_id": 3, name: option}), CPU]
    assert execution_providers(ALL, make_spec(parameters={name: text}), ON_CPU) == [CPU]


def test_accelerators_come_first_on_their_own_device():
    parameters = {"precision_mode": "FP16", "max_workspace_size_bytes": "9", "trt_engine_cache_enable": "1"}
    spec = asking("tensorrt", parameters=parameters)
    options = {
        "device_id": 3,
        "trt_fp16_enable": "1",
        "trt_max_workspace_size": "9",
        "trt_engine_cache_enable": "1",
    }
    assert execution_providers(ALL, spec, ON_GPU) == [(TENSORRT, options), (CUDA, {"device_id": 3}), CPU]
    assert execution_providers(ALL, spec, ON_CPU) == [CPU]
    spec = asking("openvino", device="cpu", parameters={"device_type": "CPU"})
    assert execution_providers(ALL, spec, ON_CPU) == [(OPENVINO, {"device_type": "CPU"}), CPU]
    assert execution_providers(ALL, asking("openvino", device="cpu"), ON_CPU) == [OPENVINO, CPU]


def test_cuda_by_name_has_its_own_options_and_those_of_the_model():
    spec = asking("cuda", parameters={"cudnn_conv_algo_search": "1"}, gpu_mem_limit="7")
    options = {"device_id": 3, "cudnn_conv_algo_search": "HEURISTIC", "gpu_mem_limit": "7"}
    assert execution_providers(ALL, spec, ON_GPU) == [(CUDA, options), CPU]


ON_BOTH = (InstanceGroup("a", 1, 1), InstanceGroup("b", 1, 1, device=Device.GPU))


@pytest.mark.parametrize(
    ("name", "device", "names", "mend"),
    [
        (
            "tensorrt",
            "gpu",
            "TensorrtExecutionProvider",
            r"gpu \(it needs NVIDIA's TensorRT, too\): .* -m pip",
        ),
        (
            "openvino",
            "cpu",
            "OpenVINOExecutionProvider",
            r"onnxruntime-openvino: .* uninstall -y onnxruntime && ",
        ),
        (
            "rocm",
            "cpu",
            "ROCMExecutionProvider or MIGraphXExecutionProvider",
            r"onnxruntime-migraphx \(it needs AMD's ROCm, too\)",
        ),
        ("rocm", "gpu", "ROCMExecutionProvider", "onnxruntime-migraphx"),
        ("coreml", "cpu", "CoreMLExecutionProvider", "It comes with onnxruntime on macOS"),
    ],
)
def test_what_this_build_lacks_is_refused_by_name_with_the_package_that_has_it(name, device, names, mend):
    spec = asking(
        name, device=device, origin={"parameters[accelerators]": Origin("config.pbtxt", "optimization", 7)}
    )
    spec = replace(spec, groups=ON_BOTH)
    place = ON_GPU if device == "gpu" else ON_CPU
    for ask in (lambda: unused([CUDA, CPU], spec), lambda: execution_providers([CUDA, CPU], spec, place)):
        with pytest.raises(ServeError, match=mend) as caught:
            ask()
        assert caught.value.code is Code.LOAD_FAILED
        for words in (
            f"the accelerator {name} (",
            "config.pbtxt",
            "7",
            names,
            "it has CUDAExecutionProvider,",
        ):
            assert words in caught.value.message
    other = ON_CPU if device == "gpu" else ON_GPU
    assert execution_providers([CUDA, CPU], spec, other)[-1] == CPU


def test_what_is_for_a_device_that_the_model_has_not_is_told():
    (note,) = unused([CPU], asking("tensorrt"))
    assert (
        note == "the accelerator tensorrt is for instances on a GPU, and the model has none: it is not used"
    )
    assert unused(ALL, replace(asking("tensorrt", "cuda"), groups=ON_BOTH)) == ()
    assert execution_providers([CPU], asking("tensorrt"), ON_CPU) == [CPU]


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("rocm", "ROCMExecutionProvider"),
        ("rocm", "MIGraphXExecutionProvider"),
        ("coreml", "CoreMLExecutionProvider"),
    ],
)
def test_devices_of_others_run_without_cuda(name, provider):
    both = [{"device": device, "name": name} for device in ("cpu", "gpu")]
    spec = make_spec(parameters={"accelerators": json.dumps(both)})
    assert execution_providers([provider, CPU], spec, ON_CPU) == [provider, CPU]
    assert execution_providers([provider, CPU], spec, ON_GPU) == [(provider, {"device_id": 3}), CPU]


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (asking("magic"), "unknown Execution Accelerator 'magic' is requested"),
        (asking("openvino"), "unknown Execution Accelerator 'openvino' is requested"),
        (
            asking("tensorrt", parameters={"precision_mode": "FP8"}),
            "precision_mode 'FP8'; expected one of FP32, FP16",
        ),
        (make_spec(parameters={"accelerators": "[1]"}), "Expected `object`"),
        (make_spec(parameters={"accelerators": "tensorrt"}), "JSON is malformed"),
    ],
)
def test_what_cannot_be(spec, found):
    for ask in (lambda: unused(ALL, spec), lambda: execution_providers(ALL, spec, ON_CPU)):
        with pytest.raises(ServeError, match=found) as caught:
            ask()
        assert caught.value.code is Code.LOAD_FAILED
