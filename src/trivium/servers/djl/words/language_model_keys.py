"""Keys of serving.properties for language models: each is used, reported (answers stay the same) or refused.

Source: spec sheets `djl`, section 11.1, and `llm`. DJL ignores the options of a runtime that it does not run, so that
they are reported; what would make another answer is refused. What but one runtime knows is in `lmi_runtime_options`.
"""

from collections.abc import Mapping

from trivium.servers.djl.words.formatters import FORMATTERS
from trivium.servers.djl.words.keys import EVERY
from trivium.servers.djl.words.lmi_option import (
    COUNT,
    LIST,
    PATH,
    LmiOption,
    refused,
    reported,
    row,
    settings_of,
    used,
)
from trivium.servers.djl.words.lmi_runtime_options import OF_ONE_RUNTIME
from trivium.servers.djl.words.lmi_runtimes import (
    ACCELERATE,
    DEEPSPEED,
    EVERY_RUNTIME,
    HANDLERS,
    LMI_DIST,
    NEURON,
    ROLLING_BATCHES,
    TRTLLM,
    VLLM,
)
from trivium.settings.kinds import SWITCH, TEXT, Number, OneOf, Whole
from trivium.settings.setting import Support
from trivium.types.model_tasks import NAMES, OF_A_CAUSAL_MODEL

_ADAPTER_ALONE = (
    "A folder that is an adapter is served with its base: give the base's folder option.enable_lora=true, and put "
    "the adapter into adapters/NAME there."
)
_BITS = (
    "the engine's quantize: 8 or 4 bits by the library bitsandbytes, dynamic_int8 by PyTorch on a processor"
)
_TOOLS = (
    "Tool calls and reasoning are not taken out of the text in this version: remove it, and parse the text."
)
_STATIC = (
    "A rolling batch has no such size: write option.max_rolling_batch_size in its place, or "
    "option.rolling_batch=disable for static batches."
)
SERVED_NAME, DEFAULT_NAME = "served_model_name", "lmi"
"""The parameter that has the name on OpenAI's wire, and that name where nothing says another."""

_ALL, _PIPELINES = (EVERY_RUNTIME,), (ACCELERATE, DEEPSPEED)
_ROLLING = OneOf(("auto", "disable", *ROLLING_BATCHES), any_case=True)
_DTYPES = OneOf(
    ("auto", "fp32", "fp16", "bf16", "int8", "float32", "float", "float16", "half", "bfloat16"), any_case=True
)
_QUANTISERS = OneOf(
    (
        "awq",
        "gptq",
        "fp8",
        "bitsandbytes",
        "bitsandbytes4",
        "bitsandbytes8",
        "dynamic_int8",
        "static_int8",
        "smoothquant",
    )
)

_TASKS = OneOf(("auto", "generate", *NAMES), any_case=True)
_OF_OTHER_CLASSES = tuple(sorted(set(NAMES) - {task.value for task in OF_A_CAUSAL_MODEL}))
_NOT_QUANTISED = ("awq", "gptq", "fp8", "static_int8", "smoothquant")

LMI_OPTIONS: Mapping[str, LmiOption] = {
    **used(
        _ALL,
        row("/engine", OneOf(("Python", "MPI", "DeepSpeed"), any_case=True), "Python"),
        row("/job_queue_size", COUNT, "1000"),
        row("async_mode", SWITCH, "true"),
        row("entryPoint", OneOf(tuple(HANDLERS)), "djl_python.lmi_vllm.vllm_async_service"),
        row("model_id", PATH),
        row("max_rolling_batch_size", COUNT, "32"),
        row("trust_remote_code", SWITCH, "false"),
        row("tgi_compat", SWITCH, "false"),
        row("model_loading_timeout", COUNT, "240"),
        row("predict_timeout", COUNT, "120"),
        row("/max_idle_time", Whole(), "60"),
        row("max_idle_time", Whole(), "60"),
    ),
    **used(
        _ALL,
        row("output_formatter", OneOf(tuple(FORMATTERS), any_case=True), "json"),
        how="also a function of model.py, which writes each answer",
    ),
    **used(
        _ALL,
        row("rolling_batch", _ROLLING, "auto"),
        how="which runtime it names is told once; disable alone batches statically",
    ),
    **used(
        _ALL,
        row("dtype", _DTYPES, "auto"),
        how="weights of 8 bits come as a .gguf file",
        refuses=("int8",),
    ),
    **used(_ALL, row("tensor_parallel_degree", Whole(1, words=("max",))), how="reported above one device"),
    **used((), row("logits_processors"), how="ours: what a request may choose by its name"),
    **used(
        (VLLM, LMI_DIST),
        row("max_rolling_batch_prefill_tokens", COUNT, "256"),
        row("max_num_batched_tokens", COUNT, "256"),
        row("max_num_seqs", COUNT),
        row("max_model_len", COUNT),
    ),
    **used((VLLM,), row(SERVED_NAME, default=DEFAULT_NAME)),
    **used(
        (VLLM,),
        row("enable_prefix_caching", SWITCH, "true"),
        how="whether beginnings are kept; answers are the same",
    ),
    **used((VLLM,), row("generation_config", OneOf(("auto", "vllm")), "auto")),
    **used((TRTLLM,), row("max_num_sequences", COUNT)),
    **used(
        (TRTLLM,),
        row("max_input_len", COUNT),
        row("max_output_len", COUNT),
        how="both together are the context",
    ),
    **used((NEURON,), row("n_positions", COUNT)),
    **used((DEEPSPEED,), row("max_tokens", COUNT)),
    **reported(_ALL, "the model directory is the folder that is served", row("model_dir", PATH)),
    **reported(_ALL, "all workers are started at once", row("parallel_loading", SWITCH, "", "true")),
    # Of every kind of model, with another meaning here.
    **refused(_ALL, _STATIC, row("/batch_size", COUNT, "1"), row("/max_dynamic_batch_size", COUNT, "1")),
    **refused(_PIPELINES, _STATIC, row("enable_streaming", OneOf(("false", "true", "huggingface")), "false")),
    **reported(
        _ALL,
        "a request joins those that run at the next step, without waiting for others",
        row("/max_batch_delay", Whole()),
        row("max_batch_delay", Whole()),
        row("waiting_steps", COUNT),
    ),
    **used(
        _ALL,
        row("task", _TASKS, "text-generation"),
        row("/task", _TASKS, "text-generation"),
        how="of the classes in config.json one has to do it",
        refuses=_OF_OTHER_CLASSES,
    ),
    # What would make other answers, or none.
    **used(_ALL, row("quantize", _QUANTISERS), how=_BITS, refuses=_NOT_QUANTISED),
    **used((VLLM,), row("quantization", _QUANTISERS), how=_BITS, refuses=_NOT_QUANTISED),
    **used(
        (ACCELERATE, NEURON),
        row("load_in_4bit", SWITCH, "false"),
        row("load_in_8bit", SWITCH, "false"),
        how=_BITS,
    ),
    **used(
        _ALL,
        row("enable_lora", SWITCH, "false"),
        how="requests may name adapters: those in the folder adapters, and those that are registered",
    ),
    **used(
        (VLLM, LMI_DIST),
        row("max_loras", COUNT, "4"),
        row("max_cpu_loras", COUNT),
        how="adapters that are held at once, all of them in memory: the latter, or else the former; 64 if neither is "
        "written",
    ),
    **used((VLLM, LMI_DIST), row("max_lora_rank", COUNT, "16")),
    **refused(_ALL, _ADAPTER_ALONE, row("is_peft_model", SWITCH, "false")),
    **refused(
        _ALL,
        "The adapters of a model lie in its folder adapters: name it so, and remove the line.",
        row("adapters", PATH, "adapters", "adapters"),
    ),
    **refused(
        (VLLM,),
        _TOOLS,
        row("enable_auto_tool_choice", SWITCH, "false"),
        row("enable_reasoning", SWITCH, "false"),
        row("tool_call_parser"),
        row("reasoning_parser"),
    ),
    **refused(
        _ALL,
        "A model on several machines is vLLM's: give it one, or let a model.py run it.",
        row("cluster_size", COUNT, "1"),
    ),
    **refused(
        _ALL,
        "Answers in the form of Bedrock are not supported in this version: write option.output_formatter=3p for its "
        "answers, or remove it.",
        row("bedrock_compat", SWITCH, "false"),
    ),
    **refused(
        _ALL,
        "A function of the folder's model.py is used by its name, and there is none such: define it there, without a "
        "handle, or remove the line.",
        row("input_formatter"),
    ),
    **refused(
        (VLLM,),
        "The template lies in the model's folder: write it to chat_template.jinja there.",
        row("chat_template", PATH),
    ),
    **refused(
        _ALL,
        "The class in config.json is one that generates text: take a model that was trained for the task.",
        row("/application", TEXT, "text-generation", "auto", "generate", "text_generation"),
    ),
    **reported(_ALL, "it runs on one device", row("pipeline_parallel_degree", COUNT, "1")),
    # The handler's process, which there is not.
    **reported(_ALL, "no handler is run", row("handler", default="handle")),
    **reported(
        _ALL,
        "the model runs in the server's own interpreter",
        row("pythonExecutable", PATH),
        row("env"),
        row("enable_venv", SWITCH, "false"),
    ),
    **reported(
        _ALL,
        "the model runs in one process",
        row("mpi_mode", SWITCH, "false"),
        row("use_passive_workers", SWITCH, "false"),
    ),
    **reported(
        _ALL,
        "there are no sessions",
        row("enable_stateful_sessions", SWITCH, "false"),
        row("sessions_path", PATH),
        row("sessions_expiration", COUNT),
    ),
    **reported(_ALL, "an answer's size is that of its tokens", row("max_output_size", COUNT)),
    **reported(
        _ALL,
        "the translator is the model's tokenizer",
        row("/translatorFactory"),
        row("/translator"),
        row("/batchifier", OneOf(("stack", "padding", "none"), any_case=True)),
    ),
    # Loading.
    **used(_ALL, row("revision"), how="of a model of the hub; of a folder it has no effect"),
    **reported(
        (ACCELERATE,),
        "the model is loaded to the instance's device",
        row("device_map", OneOf(("auto", "balanced", "balanced_low_0", "sequential")), "auto"),
    ),
    **reported(
        (ACCELERATE, DEEPSPEED, NEURON),
        "weights are never held twice",
        row("low_cpu_mem_usage", SWITCH, "true"),
    ),
    **reported(
        (VLLM, LMI_DIST, TRTLLM),
        "weights are read from safetensors or GGUF",
        row("load_format", TEXT, "auto", "safetensors", "gguf"),
    ),
    **reported((ACCELERATE,), "attention is the engine's own", row("disable_flash_attn", SWITCH, "true")),
    **reported((ACCELERATE,), "each request says it, by stop_sequences", row("stop_sequence", LIST)),
    **reported(
        (VLLM, LMI_DIST),
        "an adapter is computed in the model's data type; one that has tokens or biases of its own is refused",
        row("lora_extra_vocab_size", Whole(), "256"),
        row("lora_dtype", default="auto"),
        row("enable_lora_bias", SWITCH, "false"),
        row("fully_sharded_loras", SWITCH, "false"),
    ),
    **reported(
        (VLLM, LMI_DIST),
        "prompts are texts, and positions are the model's own",
        row("long_lora_scaling_factors", LIST),
        row("default_mm_loras"),
    ),
    **reported(_ALL, "requests that say what they accept get that", row("default_accept")),
    **reported(
        (VLLM,),
        "the template decides by itself",
        row("chat_template_content_format", OneOf(("auto", "string", "openai")), "auto"),
    ),
    **OF_ONE_RUNTIME,
}
"""Every option that a release of LMI has known for its models, and what becomes of it with the engine here."""

LANGUAGE_MODEL = {**EVERY, **settings_of(LMI_OPTIONS)}
"""Keys of folders whose language model is served without a handler."""

FORMS_OF_USED = {
    key: option.setting.kind
    for key, option in LMI_OPTIONS.items()
    if option.setting.support is Support.YES and isinstance(option.setting.kind, Whole | Number)
}
"""Key -> the form of its value, of the numbers that are used."""
