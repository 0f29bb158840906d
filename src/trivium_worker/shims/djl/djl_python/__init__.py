"""The package that DJL's handlers import: requests, answers and their codecs.

The names and what they do are those of DJL Serving's Python engine (spec sheet `djl`, section 8.3), of the release that
`__version__` names. What generates text exists by name and says, when it is used, that it is not supported.
"""

import djl_python.unsupported  # noqa: F401 - from here on its modules can be imported
from djl_python.inputs import Input
from djl_python.outputs import Output
from djl_python.pair_list import PairList
from djl_python.session_manager import Session, SessionManager

__version__ = "0.36.0"

__all__ = ["Input", "Output", "PairList", "Session", "SessionManager"]
