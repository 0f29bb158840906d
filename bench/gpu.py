"""What a GPU computes, held against the processor: tokens of a language model, an ONNX and a TorchScript model.

Tokens have to be equal in fp32, or differ first where the two best logits are less than 1e-4 apart. Throughput of 32
requests stands beside transformers' own continuous batching, in one run. Writes `docs/benchmarks/gpu.md`. Where PyTorch
sees no GPU it says so and measures nothing; `python -m bench.gpu cpu` tries the script itself, and writes nothing.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.llm import REQUESTS, build, prompts

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "gpu.md"
NEAR = 1e-4
CLOSE = 1e-3
"""By how much an output of a GPU may differ from the processor's."""

Tokens = dict[int, tuple[int, ...]]


@dataclass
class Collected:
    """The outlet of an instance: keeps what each request gets."""

    tokens: dict[int, list[int]]
    ended: int = 0

    def offer(self, item: int, part: Any) -> None:
        """Keep a part."""
        self.tokens.setdefault(item, []).extend(one for choice in part.choices for one in choice.ids)

    def end(self, item: int, part: Any) -> None:
        """Keep the last part. An error ends the measurement."""
        if isinstance(part, Exception):
            raise part
        self.offer(item, part)
        self.ended += 1

    def wake(self) -> None:
        """Nobody sleeps: whoever measures steps all the time."""


def by_ours(folder: Path, device: str) -> tuple[Tokens, float]:
    """Return the tokens of each request, greedy and in fp32, and the seconds that all took."""
    from trivium.engines.hf.engine import ENGINE
    from trivium.types.generation import Generate, Sampling
    from trivium.types.operations import Infer
    from trivium.types.running import Placement
    from trivium.types.spec import Device, Isolation, ModelSpec

    parameters = {"slots": str(REQUESTS), "dtype": "fp32", "max_context": "256"}
    spec = ModelSpec("llm", "1", folder, "hf", ".", parameters=parameters)
    kind = Device.GPU if device == "cuda" else Device.CPU
    outlet = Collected({})
    runner = ENGINE.open_steps(spec, Placement("llm_0", Isolation.PROCESS, kind, 0), outlet)
    began = time.monotonic()
    for number, (ids, count) in enumerate(prompts(), 1):
        sampling = Sampling(ignores_eos=True, samples=False, max_tokens=count)
        runner.add(number, Infer("llm", Generate(ids=(tuple(ids),), sampling=sampling)))
    while outlet.ended < REQUESTS:
        runner.step()
    seconds = time.monotonic() - began
    runner.close()
    return {number: tuple(ids) for number, ids in outlet.tokens.items()}, seconds


def by_continuous(folder: Path, device: str) -> float:
    """Return the seconds of transformers' own batching for the same requests."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.generation import ContinuousBatchingConfig

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
    model = model.to(device).eval()
    settings = GenerationConfig(max_new_tokens=96, do_sample=False, eos_token_id=-1, pad_token_id=0)
    bounds = ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=512, max_requests_per_batch=REQUESTS)
    with model.continuous_batching_context_manager(
        generation_config=settings, continuous_batching_config=bounds, warmup=False
    ) as manager:
        began = time.monotonic()
        for ids, count in prompts():
            manager.add_request(ids, max_new_tokens=count)
        ended = 0
        while ended < REQUESTS:
            result = manager.get_result(timeout=120)
            assert result is not None, "the manager has stopped"
            ended += result.is_finished()
        return time.monotonic() - began


def differences(folder: Path, here: Tokens, there: Tokens) -> list[str]:
    """Name each request whose tokens differ otherwise than where two tokens were as good as equally likely."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    for number, (ids, _) in enumerate(prompts(), 1):
        mine, its = here[number], there[number]
        at = next((i for i, (a, b) in enumerate(zip(mine, its, strict=True)) if a != b), None)
        if at is None:
            continue
        with torch.inference_mode():
            best = model(torch.tensor([[*ids, *mine[:at]]])).logits[0, -1].topk(2).values
        apart = float(best[0] - best[1])
        if apart >= NEAR:
            found.append(f"request {number}, token {at}: the two best are {apart:.6f} apart")
    return found


def by_onnx(folder: Path, device: str) -> str:
    """Compare an ONNX model on both, by our engine, and return what came out."""
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper, save

    if device == "cuda" and "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return f"not run: this ONNX Runtime ({onnxruntime.__version__}) has no CUDAExecutionProvider"
    weights = np.random.default_rng(25).standard_normal((512, 512), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 512]) for name in ("x", "y"))
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "m.onnx"
    )
    return _compared("onnx", folder, "m.onnx", device)


def by_torchscript(folder: Path, device: str) -> str:
    """Compare a TorchScript model on both, by our engine, and return what came out."""
    import torch

    torch.manual_seed(25)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).eval()
    torch.jit.trace(model, torch.ones(2, 512)).save(folder / "m.pt")
    return _compared("torch", folder, "m.pt", device)


def _compared(engine: str, folder: Path, entry: str, device: str) -> str:
    import numpy as np

    from trivium.catalogue import CATALOGUE
    from trivium.core.execution import execute
    from trivium.types.datatype import DataType
    from trivium.types.operations import Infer
    from trivium.types.payload import Tensors
    from trivium.types.running import Batch, Placement
    from trivium.types.spec import Batching, Device, Isolation, ModelSpec, TensorSpec

    name = "x" if engine == "onnx" else "INPUT__0"
    outputs = (TensorSpec("y" if engine == "onnx" else "OUTPUT__0", DataType.FP32, (512,)),)
    spec = ModelSpec(
        "m", "1", folder, engine, entry, inputs=(TensorSpec(name, DataType.FP32, (512,)),), outputs=outputs,
        batching=Batching(True, 64, True),
    )  # fmt: skip
    rows = np.random.default_rng(7).standard_normal((64, 512), np.float32)
    found = []
    for kind in (Device.CPU, Device.GPU if device == "cuda" else Device.CPU):
        runner: Any = CATALOGUE.engines[engine].open(spec, Placement("m_0", Isolation.THREAD, kind, 0))  # type: ignore[attr-defined]
        batch = Batch([1], [Infer("m", Tensors.of({name: rows}))], [64])
        (outcome,) = execute(runner, batch).outcomes
        assert isinstance(outcome, Tensors), outcome
        found.append(outcome[outputs[0].name])
        runner.close()
    most = float(np.abs(found[0] - found[1]).max() / np.abs(found[0]).max())
    word = "as" if most < CLOSE else "NOT as"
    return f"{word} on the processor: the greatest difference is {most:.1e} of the greatest value"


def main() -> None:
    """Measure, print, and write the page; or say that there is nothing to measure on."""
    import torch

    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print(
            f"Not run: PyTorch {torch.__version__} sees no GPU on this machine. Nothing was measured or written."
        )
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, *(() if device == "cuda" else (160, 2)))
        here, _ = by_ours(folder, "cpu")
        there, seconds = by_ours(folder, device)
        beside = by_continuous(folder, device)
        wrong = differences(folder, here, there)
        models = {"ONNX Runtime": by_onnx(folder, device), "TorchScript": by_torchscript(folder, device)}
    made = sum(map(len, there.values()))
    card = torch.cuda.get_device_name() if device == "cuda" else "no GPU: a trial of the script"
    page = "\n".join(
        [
            "# What a GPU computes",
            "",
            f"{card}, PyTorch {torch.__version__}. `make gpu` runs it: 100 million random weights in fp32,",
            f"{REQUESTS} requests at once, greedy.",
            "",
            "| what | came to |",
            "|---|---|",
            f"| tokens as on the processor | {'; '.join(wrong) or 'yes, all ' + str(made)} |",
            f"| tokens per second, ours | {made / seconds:.0f} |",
            f"| tokens per second, transformers' continuous batching | {made / beside:.0f} |",
            *(f"| {name} | {said} |" for name, said in models.items()),
            "",
        ]
    )
    print(page)
    if device == "cuda":
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
