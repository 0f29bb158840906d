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
                "configuration specified max_batch_size %d, but in auto-complete-config function for %s specified "
                "max_batch_size %d" % (there, self._name, max_batch_size)
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """ValueError where there is a scheduler of another kind."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError("%s: dynamic_batching cannot be set beside %s" % (self._name, other))
        self._model_config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, transaction_policy_dict: Dict[str, Any]) -> None:
        """Takes `decoupled`. ValueError for other keys, and where the configuration says otherwise."""
        unknown = sorted(set(transaction_policy_dict) - {"decoupled"})
        if unknown:
            raise ValueError("%s: a transaction policy has no %s, only decoupled" % (self._name, unknown[0]))
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" in transaction_policy_dict:
            wanted = transaction_policy_dict["decoupled"]
            if policy.setdefault("decoupled", wanted) != wanted:
                raise ValueError("%s: decoupled is set to %s already" % (self._name, policy["decoupled"]))

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

    def _add(self, section: str, tensor: Dict[str, Any], keys: Any) -> None:
        of = "%s: %s '%s'" % (self._name, section, tensor.get("name", ""))
        unknown = sorted(set(tensor) - set(keys))
        if unknown:
            raise ValueError("%s has a key %s; expected %s only" % (of, unknown[0], ", ".join(keys)))
        for key in keys[:3]:
            if key not in tensor:
                raise ValueError("%s has no %s" % (of, key))
        tensors: List[Dict[str, Any]] = self._model_config.setdefault(section, [])
        there = next((each for each in tensors if each["name"] == tensor["name"]), None)
        if there is None:
            tensors.append(tensor)
            return
        for key, said_nothing in (("data_type", "TYPE_INVALID"), ("dims", [])):
            if there.get(key, said_nothing) not in (said_nothing, tensor[key]):
                raise ValueError(
                    "%s, tensor '%s': the model expects %s %s but the model configuration specifies %s %s"
                    % (self._name, tensor["name"], key, tensor[key], key, there[key])
                )
        if "optional" in tensor and there.get("optional", tensor["optional"]) != tensor["optional"]:
            raise ValueError("%s: optional is %s in the configuration" % (of, there["optional"]))
        there.update(tensor)
