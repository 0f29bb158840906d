"""The package that DJL's handlers import: requests, answers and their codecs.

The names and what they do are those of DJL Serving's Python engine (spec sheet `djl`, section 8.3). What generates
text, keeps sessions or tests models exists by name and says, when it is used, that it is not supported.
"""

from djl_python.inputs import Input
from djl_python.outputs import Output
from djl_python.pair_list import PairList
from djl_python.unsupported import stand_in

SessionManager = stand_in("djl_python.SessionManager")
Session = stand_in("djl_python.Session")

__all__ = ["Input", "Output", "PairList", "Session", "SessionManager"]
