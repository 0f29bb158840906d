"""See `vllm`."""
