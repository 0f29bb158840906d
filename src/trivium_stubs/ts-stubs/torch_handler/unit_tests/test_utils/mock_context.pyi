from _typeshed import Incomplete
from typing import Any

class MockContext:
    manifest: dict[str, Any]
    system_properties: dict[str, Any]
    model_name: Incomplete
    explain: bool
    metrics: Incomplete
    model_yaml_config: dict[str, Any]
    def __init__(self, model_pt_file: str | None = 'model.pt', model_dir: Any = ..., model_file: str | None = 'model.py', gpu_id: Any = '0', model_name: str = 'mnist', model_yaml_config_file: str | None = None) -> None: ...
    def get_request_header(self, idx: int, exp: Any) -> bool: ...
