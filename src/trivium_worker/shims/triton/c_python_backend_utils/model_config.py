"""The configuration that a model may complete: `ModelConfig` of pb_utils.

`auto_complete_config` gets one and returns it. What clients may look for in its errors is worded as the original's.
"""

import json
from typing import Any


class ModelConfig:
    """Made from the JSON text of a configuration. What contradicts it raises ValueError."""

    def __init__(self, model_config: str) -> None:
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as it is now."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """ValueError where the configuration has a larger one."""
        there = self._model_config["max_batch_size"]
        if there > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {there}, but in {self._function} specified "
                f"max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """ValueError where there is a scheduler of another kind."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', but {self._function} tries "
                    "to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, Any]) -> None:
        """Takes `decoupled`. ValueError for other keys, and where the configuration says otherwise."""
        if any(key != "decoupled" for key in transaction_policy_dict.keys()):  # noqa: SIM118 - what is no dict has none
            raise ValueError(
                f"model transaction property in {self._function} contains property other than 'decoupled'."
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" in transaction_policy_dict:
            wanted = transaction_policy_dict["decoupled"]
            if policy.setdefault("decoupled", wanted) != wanted:
                raise ValueError(
                    f"trying to change decoupled property in auto-complete-config for {self._name}, which "
                    f"is already set to '{policy['decoupled']}'."
                )

    def add_input(self, input: dict[str, Any]) -> None:
        """A dict with name, data_type, dims and, if it may be left out, optional. See `add_output`."""
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output: dict[str, Any]) -> None:
        """A dict with name, data_type and dims. Where the configuration has one of that name, what it says must be
        the same, unless it says nothing (TYPE_INVALID, no dims). ValueError otherwise.
        """
        self._add("output", output, ("name", "data_type", "dims"))

    @property
    def _name(self) -> str:
        return f"model '{self._model_config['name']}'"

    @property
    def _function(self) -> str:
        return f"auto-complete-config function for {self._name}"

    def _add(self, section: str, tensor: dict[str, Any], keys: Any) -> None:
        named = f"{section} '{tensor['name']}'" if "name" in tuple(tensor) else section
        of = f"{named} in {self._function}"
        if any(key not in keys for key in tensor):
            listed = ", ".join(f"'{key}'" for key in keys[:-1])
            raise ValueError(f"{of} contains property other than {listed} and '{keys[-1]}'.")
        for key in keys[:3]:
            if key not in tensor:
                raise ValueError(f"{of} is missing '{key}' property.")
        tensors: list[dict[str, Any]] = self._model_config.setdefault(section, [])
        there = next((each for each in tensors if each["name"] == tensor["name"]), None)
        if there is None:
            tensors.append(tensor)
            return
        known = there.get("data_type", "TYPE_INVALID")
        if known not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load {self._name}, configuration expects datatype {known} for {named}, "
                f"model provides {tensor['data_type']}"
            )
        for key in ("dims", "optional"):
            if key in tensor and there.get(key, []) not in ([], tensor[key]):
                raise ValueError(
                    f"{self._name}, tensor '{tensor['name']}': the model expects {key} {tensor[key]} but "
                    f"the model configuration specifies {key} {there[key]}"
                )
        there.update(tensor)


ModelConfig.__module__ = "triton_python_backend_utils"  # where the original's is
