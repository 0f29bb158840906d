"""Keys of serving.properties for models of texts in static batches: those of language models, but for these rows.

Source: spec sheet `djl`, sections 11.1 and 11.2, and LMI's handler `huggingface`.
"""

from trivium.servers.djl.words.keys import refused, reported, used
from trivium.servers.djl.words.language_model_keys import LANGUAGE_MODEL

_QUANTISED = (
    "A model that is batched statically is not quantised: write option.dtype=bf16 for half the memory."
)
_ADAPTERS = "Adapters go with a rolling batch: write option.rolling_batch=auto, or merge the adapter into the weights."
_ROLLING = "requests are batched statically, by batch_size"

TASK_MODEL = {
    **LANGUAGE_MODEL,
    **used("option.task", "task", "batch_size", "max_dynamic_batch_size", "option.enable_streaming"),
    **used("max_batch_delay", "option.max_batch_delay", "option.max_input_len"),
    **reported(
        _ROLLING,
        *("option.max_rolling_batch_size", "option.max_num_sequences", "option.max_num_seqs"),
        *("option.max_rolling_batch_prefill_tokens", "option.max_num_batched_tokens", "option.waiting_steps"),
    ),
    **reported(
        "a text has as many tokens as the model knows",
        *("option.max_model_len", "option.n_positions", "option.max_tokens"),
        "option.max_output_len",
    ),
    **reported("a static batch has one form of answer", "option.output_formatter"),
    **reported("tokens are computed anew for each batch", "option.enable_prefix_caching"),
    **reported("a request says how its tokens are chosen", "option.generation_config"),
    **reported("a static batch has no processors of its own", "option.logits_processors"),
    **reported("OpenAI's API asks models that generate in a rolling batch", "option.served_model_name"),
    **refused(_ADAPTERS, "option.enable_lora", harmless=("", "false")),
    **reported(
        "there are no adapters",
        *("option.max_loras", "option.max_lora_rank", "option.max_cpu_loras", "option.lora_extra_vocab_size"),
    ),
    **refused(_QUANTISED, "option.quantize", "option.quantization"),
    **refused(_QUANTISED, "option.load_in_8bit", "option.load_in_4bit", harmless=("", "false")),
    **reported("a static batch has one form of answer", "option.tgi_compat", harmless=("", "false")),
    **reported("each request says it, by normalize", "option.normalize", harmless=("", "true")),
}
"""Keys of folders whose model of texts is served without a handler."""
