from djl_python.inputs import Input as Input
from djl_python.outputs import Output as Output
from djl_python.pair_list import PairList as PairList
from djl_python.session_manager import Session as Session, SessionManager as SessionManager

__version__: str
