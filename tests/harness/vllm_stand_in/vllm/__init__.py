"""A stand-in for vLLM 0.32: the interface that the engine `vllm` uses, with an arithmetic in place of a model.

A test holds its signatures against those of the installed vLLM (`make vllm`). Tokens follow from the prompt, the tokens
before, the seed and the adapter. Some tokens in a prompt make something happen: see `v1.engine.async_llm`.
"""
