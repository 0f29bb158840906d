"""Keys of serving.properties: each is used, passed on, reported (answers stay the same) or refused.

Source: spec sheet `djl`, sections 3.1 to 3.3. A key without a row is passed on to the handler, whose argument it is;
a native engine has nobody to take it, which is reported. The texts say what happens instead. `engines` has the keys of
each engine.
"""

from trivium.settings.setting import Setting, Support

_NO = ("", "false")


def used(*keys: str) -> dict[str, Setting]:
    """Return rows of keys that are used."""
    return _rows(keys, Support.YES)


def passed_on(*keys: str) -> dict[str, Setting]:
    """Return rows of keys that the handler gets."""
    return _rows(keys, Support.PASSED_ON)


def reported(why: str, *keys: str, harmless: tuple[str, ...] = ()) -> dict[str, Setting]:
    """Return rows of keys without which answers are the same; `why` says so. Values that are `harmless` (in lower case)
    wish for nothing.
    """
    return _rows(keys, Support.REPORTED, why, harmless)


def refused(way_out: str, *keys: str, harmless: tuple[str, ...] = ()) -> dict[str, Setting]:
    """Return rows of keys that refuse a model."""
    return _rows(keys, Support.REFUSED, way_out, harmless)


def _rows(
    keys: tuple[str, ...], support: Support, how: str = "", harmless: tuple[str, ...] = ()
) -> dict[str, Setting]:
    return {key: Setting(key, support=support, how=how, harmless=harmless) for key in keys}


EVERY = {
    **used("engine", "load_on_devices", "job_queue_size", "batch_size", "max_dynamic_batch_size"),
    **used("max_batch_delay", "max_idle_time", "option.max_batch_delay", "option.max_idle_time"),
    **used(
        "minWorkers", "maxWorkers", "cpu.minWorkers", "cpu.maxWorkers", "gpu.minWorkers", "gpu.maxWorkers"
    ),
    **reported("devices of that kind are not used", "nc.minWorkers", "nc.maxWorkers"),
    **used("retry_threshold", "option.modelName", "option.modeName", "option.model_loading_timeout"),
    **used("required_memory_mb", "reserved_memory_mb", "gpu.required_memory_mb", "gpu.reserved_memory_mb"),
    **used("log_model_metric", "log_request_metric", "metrics_aggregation"),
    **reported("all workers are started at once", "option.parallel_loading", harmless=("", "true")),
    **reported("the model directory is the folder that is served", "option.model_dir"),
}

PYTHON = {
    **EVERY,
    **used("option.pythonExecutable", "option.entryPoint", "option.handler", "option.env"),
    **used("option.predict_timeout", "option.enable_venv", "option.async_mode", "trivium_in_flight"),
    **used("option.enable_lora"),
    **used("option.rolling_batch", "option.max_rolling_batch_size"),
    **passed_on("option.model_id", "option.max_output_size"),
    **passed_on("option.enable_stateful_sessions", "option.sessions_path", "option.sessions_expiration"),
    **passed_on("option.model_format", "option.default_accept"),
    **passed_on("option.skops_trusted_types", "option.trust_insecure_model_files"),
    **used("option.mpi_mode", "option.use_passive_workers"),
    **used("option.tensor_parallel_degree", "option.pipeline_parallel_degree"),
    **reported(
        "formatters of generated text are not supported in this version: format the text in the handler",
        "option.output_formatter",
        "option.input_formatter",
    ),
}
"""Keys of models that run a handler."""

NATIVE = {
    **EVERY,
    **used("batchifier", "translatorFactory", "translator", "application", "task"),
    **refused("Blocks written in Java cannot run here: export the model to a file.", "blockFactory"),
}

PYTORCH = {
    **NATIVE,
    **reported(
        "the model is loaded to the instance's device, whatever it was saved on",
        "option.mapLocation",
        harmless=("true",),
    ),
    **used("option.extraFiles"),
    **reported("the model is only run, never trained", "option.trainParam", harmless=_NO),
}
"""Keys of TorchScript files."""

ONNX = {
    **NATIVE,
    **used("option.interOpNumThreads", "option.intraOpNumThreads", "option.executionMode", "option.optLevel"),
    **used("option.memoryPatternOptimization", "option.cpuArenaAllocator"),
    **reported("each instance has its own threads", "option.disablePerSessionThreads", harmless=_NO),
    **used("option.ortDevice", "option.profilerOutput", "option.customOpLibrary"),
}
"""Keys of ONNX files."""

XGBOOST = {**NATIVE, **used("option.Mode", "option.TreeLimit")}
"""Keys of XGBoost's files."""

LIGHTGBM = {**NATIVE, **used("option.inference_type")}
"""Keys of LightGBM's files."""

PADDLE = {
    **NATIVE,
    **used("option.CMLNumThreads", "option.enableMKLDNN", "option.SwitchIrOptim", "option.removePass"),
    **reported("Paddle writes no lines of its own here", "option.DisableGlog", harmless=("", "true")),
    **reported(
        "Paddle's own operators compute here, as without it: for ONNX Runtime, convert the model to ONNX",
        "option.enableONNXRuntime",
        "option.enableOrtOptimization",
        harmless=_NO,
    ),
}
"""Keys of Paddle's files."""

TENSORFLOW = {
    **NATIVE,
    **used("option.Tags", "option.SignatureDefKey"),
    **reported(
        "each instance has a session and threads of its own", "option.ConfigProto", "option.RunOptions"
    ),
}
"""Keys of TensorFlow's SavedModels."""
MXNET = {
    **NATIVE,
    **used("option.epoch", "option.hasParameter"),
    **reported("the graph is run as it is, without another library's optimisation", "option.MxOptimizeFor"),
    **reported("the model is only run, never trained", "option.trainParam", harmless=_NO),
}
"""Keys of MXNet's symbols and parameters."""
