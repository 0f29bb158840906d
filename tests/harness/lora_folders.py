"""Folders of adapters (LoRA) for tiny language models, as PEFT writes them, and the models that they make.

An adapter's tokens were compared with those of PEFT 0.21.2 itself, for every kind that is served: `merged` gives the
same. Needs torch, transformers and safetensors.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

ATTENTION = ("q_proj", "v_proj")


def write_adapter(
    folder: Path,
    model: Path,
    seed: int = 0,
    rank: int = 4,
    targets: Sequence[str] = ATTENTION,
    strength: float = 0.3,
    **config: object,
) -> Path:
    """Write an adapter of random weights for the modules of a model that have these names, and return its folder. What
    its configuration says besides is in `config`.
    """
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    told = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(model),
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.05,
        "target_modules": list(targets),
        "bias": "none",
        "inference_mode": True,
        "peft_version": "0.21.2",
        "rank_pattern": {},
    } | config
    random = torch.Generator().manual_seed(seed)
    weights = {}
    for name, (inputs, outputs) in matrices(model).items():
        if not any(name == target or name.endswith(f".{target}") for target in targets):
            continue
        own = next((r for key, r in told["rank_pattern"].items() if name.endswith(key)), rank)
        for part, shape in (("A", (own, inputs)), ("B", (outputs, own))):
            made = torch.randn(shape, generator=random) * strength / math.sqrt(own)
            weights[f"base_model.model.{name}.lora_{part}.weight"] = made
    assert weights, targets
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(told, indent=2))
    safetensors.save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
    return folder


def matrices(model: Path) -> dict[str, tuple[int, int]]:
    """The inputs and outputs of each module of a model that multiplies by a matrix."""
    return {name: sizes for name, (_, sizes, _) in _modules(opened(model)).items()}


def opened(model: Path):
    """A model in fp32."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    return transformers.AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def merged(model: Path, adapter: Path, save: Path | None = None):
    """The model with an adapter's change in its weights: W + scale * B @ A; with `save` also as a folder."""
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    whole = opened(model)
    told = json.loads((adapter / "adapter_config.json").read_text())
    weights = safetensors.load_file(adapter / "adapter_model.safetensors")
    with torch.inference_mode():
        for name, (module, _, is_turned) in _modules(whole).items():
            key = f"base_model.model.{name}.lora_%s.weight"
            if key % "A" not in weights:
                continue
            down, up = weights[key % "A"], weights[key % "B"]
            alphas = told.get("alpha_pattern") or {}
            alpha = next((a for one, a in alphas.items() if name.endswith(one)), told["lora_alpha"])
            rank = down.shape[0]
            change = (up @ down) * (alpha / (math.sqrt(rank) if told.get("use_rslora") else rank))
            module.weight.add_(change.t() if is_turned else change)
    if save is not None:
        whole.save_pretrained(save)
        for file in model.glob("*token*"):
            (save / file.name).write_bytes(file.read_bytes())
    return whole


def _modules(whole):
    torch = pytest.importorskip("torch")
    found = {}
    for name, module in whole.named_modules():
        if type(module).__name__ == "Conv1D":
            found[name] = module, (module.nx, module.nf), True
        elif isinstance(module, torch.nn.Linear) and name != "lm_head":
            found[name] = module, (module.in_features, module.out_features), False
    return found
