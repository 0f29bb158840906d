"""Adapters (LoRA) of a language model: PEFT folders, applied to the tokens of those requests that name them."""
