"""ObjectDetector, which is not served yet."""

from ts.unserved import unserved_class

ObjectDetector = unserved_class(__name__, "ObjectDetector")
