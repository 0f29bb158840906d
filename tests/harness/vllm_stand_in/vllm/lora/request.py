"""Names an adapter."""

from dataclasses import dataclass


@dataclass
class LoRARequest:
    """An adapter: its name, its number and its folder."""

    lora_name: str
    lora_int_id: int
    lora_path: str = ""
    base_model_name: str | None = None
    load_inplace: bool = False
    is_3d_lora_weight: bool = False
