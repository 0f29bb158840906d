"""Makes a Hugging Face folder in bfloat16 of a GGUF file: `python -m trivium.demo.dequantise FILE FOLDER`."""

import sys
from pathlib import Path
from typing import Any


def main(file: Path, folder: Path) -> None:
    """Read the file with its weights unpacked, and save model and tokenizer; needs the extra `llm`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model: Any = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
