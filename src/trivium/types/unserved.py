"""Model files that nothing here opens, each by its library's name, with the way to a file that is served. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

WEIGHTS = (
    "Serve the folder of the model's weights, as Hugging Face has them, itself: `trivium serve FOLDER`."
    """What to do with a model of another runtime for language models."""
)


@dataclass(frozen=True, slots=True)
class Unserved:
    """One library. Its files end in one of `suffixes`, or begin with one of `starts`; `names` are those that an
    `engine` of DJL or a `backend` of Triton could have for it, besides its own.
    """

    library: str
    way_out: str
    suffixes: tuple[str, ...] = ()
    starts: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()


UNSERVED: Sequence[Unserved] = (
    Unserved(
        "TensorRT",
        "An engine of TensorRT runs on the GPU alone that it was built for: serve the ONNX model that it was built "
        "from, by ONNX Runtime, which uses TensorRT where it is asked to.",
        (".plan", ".trt", ".engine"),
        names=("tensorrt_plan",),
    ),
    Unserved(
        "UFF",
        "TensorRT reads UFF no more: convert the TensorFlow model that it was made from to ONNX, by tf2onnx for "
        "example, and serve that.",
        (".uff",),
    ),
    Unserved("TensorRT-LLM", WEIGHTS, names=("TRT-LLM", "TRTLLM", "tensorrt_llm")),
    Unserved(
        "fastText",
        "Run it in a model.py, whose handle(inputs) calls fasttext.load_model and predict.",
        (".ftz",),
        (b"\xba\x16\x4f\x2f",),
    ),
    Unserved(
        "Caffe",
        "Convert the .caffemodel with its .prototxt to ONNX, by caffe2onnx for example, and serve that.",
        (".caffemodel", ".prototxt"),
        names=("Caffe2", "caffe2_netdef"),
    ),
    Unserved(
        "Neuron",
        "What is compiled for Neuron runs on AWS Inferentia and Trainium alone: serve the TorchScript or ONNX model "
        "that it was compiled from.",
        (".neff",),
        names=("NeuronX", "Transformers-NeuronX"),
    ),
    Unserved(
        "TFLite",
        "Convert it to ONNX, by `python -m tf2onnx.convert --tflite FILE --output model.onnx`, and serve that.",
        (".tflite",),
    ),
)


def unserved_file(suffix: str, head: bytes = b"") -> Unserved | None:
    """Return the row of a file by its suffix, in lower case, or its first bytes; None for any other file."""
    return next(
        (row for row in UNSERVED if suffix in row.suffixes or any(map(head.startswith, row.starts))), None
    )
