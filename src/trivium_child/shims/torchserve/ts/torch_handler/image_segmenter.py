"""ImageSegmenter, which is not served yet."""

from ts.unserved import unserved_class

ImageSegmenter = unserved_class(__name__, "ImageSegmenter")
