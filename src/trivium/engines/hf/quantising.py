"""Weights in 8 or 4 bits, made of a folder's own when it is loaded: by the library bitsandbytes, or by PyTorch.

They take a half to an eighth of the memory, and answer a little otherwise.
"""

import logging
import warnings
from importlib.util import find_spec
from typing import Any

from trivium.engines.hf.folder import Checkpoint, unfit
from trivium.engines.hf.options import BITS_4, BITS_8, DYNAMIC, NONE
from trivium.machine.extras import lacking
from trivium.settings.parameters import place_of
from trivium.types.errors import Code
from trivium.types.spec import ModelSpec


def judge_quantiser(spec: ModelSpec, chosen: str, files: Checkpoint, is_gpu: bool) -> None:
    """Raise for what cannot be quantised so, or here: UNSUPPORTED, with what would do."""
    where = place_of(spec, "quantize")
    if chosen == NONE:
        return
    if files.gguf:
        words = (
            f"parameter 'quantize' is {chosen}{where}, and {files.gguf} is quantised as it is. Leave it out."
        )
        raise unfit(spec, words, Code.UNSUPPORTED)
    if "quantization_config" in files.config:
        words = (
            f"parameter 'quantize' is {chosen}{where}, and the weights are quantised already. Leave it out."
        )
        raise unfit(spec, words, Code.UNSUPPORTED)
    if chosen == DYNAMIC:
        if is_gpu:
            words = (
                f"parameter 'quantize' is {chosen}{where}, which processors alone compute. Write {BITS_8}."
            )
            raise unfit(spec, words, Code.UNSUPPORTED)
        return
    if find_spec("bitsandbytes") is None:
        missing = ModuleNotFoundError("No module named 'bitsandbytes'", name="bitsandbytes")
        raise lacking("Weights in 8 and 4 bits", missing, "quantize")


def library_config(chosen: str) -> Any | None:
    """Return what transformers quantises weights by while it reads them; None where it does not."""
    if chosen not in (BITS_8, BITS_4):
        return None
    import transformers as untyped_transformers

    transformers: Any = untyped_transformers
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it writes a line for each call
    return transformers.BitsAndBytesConfig(load_in_8bit=chosen == BITS_8, load_in_4bit=chosen == BITS_4)


def quantised(model: Any, chosen: str) -> Any:
    """Return a model that was read, with its layers in 8 bits if PyTorch is to do that."""
    if chosen != DYNAMIC:
        return model
    import torch
    from torch.ao import quantization as untyped_quantization

    quantization: Any = untyped_quantization
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and says so for each layer
        return quantization.quantize_dynamic(model.eval(), {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
