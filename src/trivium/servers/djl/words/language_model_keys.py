"""Keys of serving.properties for language models: each is used, reported (answers stay the same) or refused.

Source: spec sheets `djl`, section 11.1, and `llm`. DJL ignores the options of a runtime that it does not run, so that
they are reported; what would make another answer is refused.
"""

from trivium.servers.djl.words.keys import EVERY, refused, reported, used

_UNLESS_FALSE = ("", "false")
_ADAPTERS = (
    "Adapters of language models are not supported in this version: merge the adapter into the weights, or load it in "
    "a model.py."
)
_QUANTISED = (
    "Quantising is not supported in this version: serve the weights with option.dtype=bf16, or a .gguf file."
)
_DRAFTS = (
    "Draft models are not supported in this version: remove it; answers are the same without, only later."
)
_TOOLS = (
    "Tool calls and reasoning are not taken out of the text in this version: remove it, and parse the text."
)
_GPUS = "A model on several machines is vLLM's: give it one, or let a model.py run it."
_STATIC = (
    "A rolling batch has no such size: write option.max_rolling_batch_size in its place, or "
    "option.rolling_batch=disable for static batches."
)

LANGUAGE_MODEL = {
    **EVERY,
    **used("option.rolling_batch", "option.model_id", "option.entryPoint", "option.dtype"),
    **used("option.max_rolling_batch_size", "option.max_num_sequences", "option.max_num_seqs"),
    **used("option.max_rolling_batch_prefill_tokens", "option.max_num_batched_tokens"),
    **used("option.max_model_len", "option.n_positions", "option.max_tokens"),
    **used("option.max_input_len", "option.max_output_len"),
    **used("option.trust_remote_code", "option.output_formatter", "option.tgi_compat"),
    **used("option.logits_processors"),
    **used("option.tensor_parallel_degree", "option.predict_timeout"),
    # Of every kind of model, with another meaning here.
    **refused(_STATIC, "batch_size", "max_dynamic_batch_size", harmless=("", "1")),
    **refused(_STATIC, "option.enable_streaming", harmless=_UNLESS_FALSE),
    **reported(
        "a request joins those that run at the next step, without waiting for others",
        *("max_batch_delay", "option.max_batch_delay", "option.waiting_steps"),
    ),
    # What would make other answers, or none.
    **refused(_QUANTISED, "option.quantize", "option.quantization"),
    **refused(_QUANTISED, "option.load_in_4bit", "option.load_in_8bit", harmless=_UNLESS_FALSE),
    **refused(_ADAPTERS, "option.enable_lora", "option.is_peft_model", harmless=_UNLESS_FALSE),
    **refused(_ADAPTERS, "option.adapters"),
    **refused(_DRAFTS, "option.draft_model_id"),
    **refused(_TOOLS, "option.enable_auto_tool_choice", "option.enable_reasoning", harmless=_UNLESS_FALSE),
    **refused(_TOOLS, "option.tool_call_parser", "option.reasoning_parser"),
    **reported("it runs on one device", "option.pipeline_parallel_degree", harmless=("", "1")),
    **refused(_GPUS, "option.cluster_size", harmless=("", "1")),
    **refused(
        "Answers in the form of Bedrock are not supported in this version: remove it.",
        "option.bedrock_compat",
        harmless=_UNLESS_FALSE,
    ),
    **refused(
        "A formatter of the model's own is not supported in this version: remove it, or write a model.py.",
        "option.input_formatter",
    ),
    **refused(
        "The template lies in the model's folder: write it to chat_template.jinja there.",
        "option.chat_template",
    ),
    **refused(
        "The class in config.json is one that generates text: take a model that was trained for the task.",
        *("option.task", "task", "application"),
        harmless=("", "auto", "generate", "text-generation", "text_generation"),
    ),
    **reported(
        "requests of a language model always run together", "option.async_mode", harmless=_UNLESS_FALSE
    ),
    # The handler's process, which there is not.
    **reported("no handler is run", "option.handler", harmless=("", "handle")),
    **reported(
        "the model runs in the server's own interpreter",
        *("option.pythonExecutable", "option.env", "option.enable_venv"),
        harmless=_UNLESS_FALSE,
    ),
    **reported(
        "the model runs in one process",
        *("option.mpi_mode", "option.use_passive_workers", "option.multi_gpu"),
        harmless=_UNLESS_FALSE,
    ),
    **reported("there are no sessions", "option.enable_stateful_sessions", harmless=_UNLESS_FALSE),
    **reported("there are no sessions", "option.sessions_path", "option.sessions_expiration"),
    **reported("an answer's size is that of its tokens", "option.max_output_size"),
    **reported("the translator is the model's tokenizer", "translatorFactory", "translator", "batchifier"),
    # Loading.
    **reported("the folder holds one revision", "option.revision"),
    **reported("the model is loaded to the instance's device", "option.device_map", harmless=("", "auto")),
    **reported("weights are never held twice", "option.low_cpu_mem_usage", harmless=("", "true")),
    **reported(
        "weights are read from safetensors or GGUF",
        *("option.load_format", "option.checkpoint", "option.load_split_model"),
        harmless=("", "auto", "safetensors", "gguf", "false"),
    ),
    **reported("memory is that of the weights and of slots times context", "option.gpu_memory_utilization"),
    **reported(
        "memory is that of the weights and of slots times context",
        *(
            "option.kv_cache_free_gpu_mem_fraction",
            "option.cpu_offload_gb_per_gpu",
            "option.tokens_per_block",
        ),
    ),
    # Decoding.
    **reported(
        "each request says how its tokens are chosen, by do_sample",
        "option.decoding_strategy",
        harmless=("", "greedy"),
    ),
    **reported("each request says it, by stop_sequences", "option.stop_sequence"),
    **reported("there is no draft model", "option.spec_length", harmless=("", "0")),
    **reported(
        "there are no adapters",
        *("option.max_loras", "option.max_lora_rank", "option.max_cpu_loras", "option.lora_extra_vocab_size"),
    ),
    **reported("requests that say what they accept get that", "option.default_accept"),
    **reported(
        "the template decides by itself",
        "option.chat_template_content_format",
        harmless=("", "auto"),
    ),
    **reported("nothing is embedded", "option.normalize"),
    # Options of one runtime of DJL's.
    **reported("requests of different lengths are not padded", "option.max_sparsity", "option.max_splits"),
    **reported(
        "attention is the engine's own",
        *("option.paged_attention", "option.disable_flash_attn"),
        harmless=("", "true"),
    ),
    **reported(
        "an option of vLLM's own kernels",
        *("option.enforce_eager",),
    ),
    **reported(
        "an option of DeepSpeed's",
        *("option.enable_cuda_graph", "option.triangular_masking", "option.return_tuple"),
        *("option.training_mp_size", "option.smoothquant_alpha", "option.deepspeed_config_path"),
        *("option.save_mp_checkpoint_path",),
    ),
    **reported(
        "an option of Transformers-NeuronX",
        *("option.unroll", "option.neuron_optimize_level", "option.context_length_estimate"),
        *("option.compiled_graph_path", "option.group_query_attention", "option.amp"),
        *("option.enable_mixed_precision_accumulation",),
    ),
    **reported(
        "an option of TensorRT-LLM",
        *("option.use_custom_all_reduce", "option.batch_scheduler_policy", "option.enable_trt_overlap"),
        *("option.enable_kv_cache_reuse", "option.baichuan_model_version", "option.chatglm_model_version"),
        *("option.gpt_model_version", "option.multi_block_mode", "option.use_fused_mlp"),
        *("option.smoothquant_per_token", "option.smoothquant_per_channel", "option.multi_query_mode"),
        *("option.awq_format", "option.awq_calib_size"),
    ),
    **reported(
        "positions are turned as config.json says",
        *(
            "option.rotary_base",
            "option.rotary_dim",
            "option.rotary_scaling_factor",
            "option.rotary_scaling_type",
        ),
    ),
    **reported(
        "an option of models that make pictures",
        "option.height",
        "option.width",
        "option.num_images_per_prompt",
    ),
}
"""Keys of folders whose language model is served without a handler."""
