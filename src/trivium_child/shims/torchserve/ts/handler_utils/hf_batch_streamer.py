"""TextIteratorStreamerBatch, which is not served yet."""

from ts.unserved import unserved_class

TextIteratorStreamerBatch = unserved_class(__name__, "TextIteratorStreamerBatch")
