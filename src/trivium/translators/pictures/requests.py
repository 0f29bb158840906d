"""The picture of a request: its bytes, or the URL to fetch them from. Pure.

Source: spec sheet `djl`, section 10. A file of this machine is never opened, whatever a request calls it.
"""

import base64
import binascii
import json
import re

from trivium.codecs.header_text import essence
from trivium.translators.faults import refusal_in_words, unfit

_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,(.*)", re.DOTALL | re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SHOWN = 80


def picture_source(content: bytes, content_type: str) -> bytes | str:
    """Return the picture's bytes, or the http(s) URL that stands for them. INVALID for a request that has neither.

    `content` is the body or the form's field `data`; JSON is `{"image_url": ...}`, anything else is the file itself.
    """
    if not content:
        raise refusal_in_words("Input data is empty.")
    if essence(content_type) != "application/json":
        return content
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise refusal_in_words("Input is not a valid json.", f"{error}.") from error
    if not isinstance(document, dict):
        raise refusal_in_words("Invalid JsonObject input.", 'Expected {"image_url": "https://..."}.')
    url = document.get("image_url")
    if not isinstance(url, str):
        raise refusal_in_words('Missing "image_url" in json.')
    if match := _DATA_URL.fullmatch(url):
        return _decoded(match[1])
    if not _WEB.match(url):
        raise unfit(
            f"image_url is {url[:_SHOWN]!r}; expected an http or https URL, or data:image/...;base64,... "
            "Files of the server are not opened: send the file itself as the body.",
        )
    return url


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise refusal_in_words(
            "Input is not an Image data type", f"(image_url's base64: {error})."
        ) from error
