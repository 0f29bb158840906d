"""Hugging Face causal language models in rolling batches, by PyTorch and transformers."""
