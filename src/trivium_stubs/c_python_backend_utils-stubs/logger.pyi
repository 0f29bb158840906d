from _typeshed import Incomplete
from c_python_backend_utils.names import Numbered

class LogLevel(Numbered):
    INFO: int
    WARNING: int
    ERROR: int
    VERBOSE: int

class Logger:
    LogLevel = LogLevel
    INFO: Incomplete
    WARNING: Incomplete
    ERROR: Incomplete
    VERBOSE: Incomplete
    @staticmethod
    def log(message: str, level: int = ...) -> None: ...
    @staticmethod
    def log_info(message: str) -> None: ...
    @staticmethod
    def log_warn(message: str) -> None: ...
    @staticmethod
    def log_error(message: str) -> None: ...
    @staticmethod
    def log_verbose(message: str) -> None: ...
