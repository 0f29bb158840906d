"""The configuration that a model may complete: `ModelConfig` of pb_utils.

`auto_complete_config` gets one and returns it. What clients may look for in its errors is worded as the original's.
"""

import json
from typing import Any, Dict, List


class ModelConfig:
    """Made from the JSON text of a configuration. What contradicts it raises ValueError."""

    def __init__(self, model_config: str) -> None:
        self._model_config: Dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> Dict[str, Any]:
        """The configuration as it is now."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """ValueError where the configuration has a larger one."""
        there = self._model_config["max_batch_size"]
        if there > max_batch_size:
            raise ValueError(
                "configuration specified max_batch_size %d, but in %s specified max_batch_size %d"
                % (there, self._function, max_batch_size)
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """ValueError where there is a scheduler of another kind."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    "Configuration specified scheduling_choice as '%s', but %s tries to set scheduling_choice as "
                    "'dynamic_batching'" % (other, self._function)
                )
        self._model_config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, transaction_policy_dict: Dict[str, Any]) -> None:
        """Takes `decoupled`. ValueError for other keys, and where the configuration says otherwise."""
        if any(key != "decoupled" for key in transaction_policy_dict.keys()):  # noqa: SIM118 - what is no dict has none
            raise ValueError(
                "model transaction property in %s contains property other than 'decoupled'." % self._function
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" in transaction_policy_dict:
            wanted = transaction_policy_dict["decoupled"]
            if policy.setdefault("decoupled", wanted) != wanted:
                raise ValueError(
                    "trying to change decoupled property in auto-complete-config for %s, which is already set to '%s'."
                    % (self._name, policy["decoupled"])
                )

    def add_input(self, input: Dict[str, Any]) -> None:
        """A dict with name, data_type, dims and, if it may be left out, optional. See `add_output`."""
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output: Dict[str, Any]) -> None:
        """A dict with name, data_type and dims. Where the configuration has one of that name, what it says must be
        the same, unless it says nothing (TYPE_INVALID, no dims). ValueError otherwise.
        """
        self._add("output", output, ("name", "data_type", "dims"))

    @property
    def _name(self) -> str:
        return "model '%s'" % self._model_config["name"]

    @property
    def _function(self) -> str:
        return "auto-complete-config function for %s" % self._name

    def _add(self, section: str, tensor: Dict[str, Any], keys: Any) -> None:
        named = "%s '%s'" % (section, tensor["name"]) if "name" in tuple(tensor) else section
        of = "%s in %s" % (named, self._function)
        if any(key not in keys for key in tensor):
            listed = ", ".join("'%s'" % key for key in keys[:-1])
            raise ValueError("%s contains property other than %s and '%s'." % (of, listed, keys[-1]))
        for key in keys[:3]:
            if key not in tensor:
                raise ValueError("%s is missing '%s' property." % (of, key))
        tensors: List[Dict[str, Any]] = self._model_config.setdefault(section, [])
        there = next((each for each in tensors if each["name"] == tensor["name"]), None)
        if there is None:
            tensors.append(tensor)
            return
        known = there.get("data_type", "TYPE_INVALID")
        if known not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                "unable to load %s, configuration expects datatype %s for %s, model provides %s"
                % (self._name, known, named, tensor["data_type"])
            )
        for key in ("dims", "optional"):
            if key in tensor and there.get(key, []) not in ([], tensor[key]):
                raise ValueError(
                    "%s, tensor '%s': the model expects %s %s but the model configuration specifies %s %s"
                    % (self._name, tensor["name"], key, tensor[key], key, there[key])
                )
        there.update(tensor)


ModelConfig.__module__ = "triton_python_backend_utils"  # where the original's is
