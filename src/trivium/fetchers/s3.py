"""Fetches a folder or an archive from S3, by boto3 and with its credentials; the extra `s3` installs it.

Decides which objects become which files. Where S3 is, boto3's own settings say (AWS_ENDPOINT_URL and its like).
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from trivium.fetchers.allowance import Allowance, Cutter
from trivium.fetchers.policy import is_file, permitted, safe_name, shown
from trivium.machine.extras import lacking
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds

_PIECE = 2**16
_SECONDS_OF_SILENCE = 20
_ABSENT = ("404", "NoSuchKey", "NoSuchBucket", "NotFound")


class _Client(Protocol):
    def get_paginator(self, name: str) -> Any: ...

    def get_object(self, *, Bucket: str, Key: str) -> Any: ...


class S3Fetcher:
    """Implements `types.interfaces.Fetcher` for `s3://bucket/prefix`."""

    schemes = ("s3",)

    def fetch(self, uri: str, into: Path, bounds: FetchBounds) -> Path:
        """See `Fetcher`. What ends like an archive or a definition is one object; all else is a folder of objects."""
        place = permitted(uri, bounds.places)
        client, errors = _connected()
        key = place.path.strip("/")
        target = into / safe_name(f"{place.host}/{key}")
        with Cutter(bounds) as cutter:
            allowance = Allowance(uri, bounds, cutter)
            try:
                if is_file(key):
                    _store(client, place.host, key, target, allowance)
                else:
                    _store_folder(client, uri, place.host, target, allowance)
            except errors as error:
                raise _translated(uri, error) from error
            except OSError as error:
                words = f"{shown(uri)} could not be fetched: {cutter.reason or error}. Try again."
                raise ServeError(Code.LOAD_FAILED, words) from error
        return target


def _connected() -> tuple[_Client, tuple[type[Exception], ...]]:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise lacking("Models in S3", error, "s3") from error
    config = Config(
        connect_timeout=_SECONDS_OF_SILENCE,
        read_timeout=_SECONDS_OF_SILENCE,
        retries={"total_max_attempts": 3},
        user_agent_extra="trivium",
    )
    errors: tuple[type[Exception], ...] = (BotoCoreError, ClientError, ValueError)
    try:
        return boto3.client("s3", config=config), errors
    except errors as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"S3 cannot be asked: {error}. Set AWS_DEFAULT_REGION, AWS_PROFILE and their like.",
        ) from error


def _store_folder(client: _Client, uri: str, bucket: str, target: Path, allowance: Allowance) -> None:
    prefix = uri.partition("?")[0].partition("://")[2].partition("/")[2].rstrip("/")
    prefix = f"{prefix}/" if prefix else ""
    target.mkdir()
    count = 0
    for key in _keys(client, bucket, prefix, allowance):
        path = key.removeprefix(prefix)
        file = target.joinpath(*_segments(key, path))
        file.parent.mkdir(parents=True, exist_ok=True)
        _store(client, bucket, key, file, allowance)
        count += 1
    if not count:
        raise ServeError(
            Code.NOT_FOUND,
            f"There is nothing at {shown(uri)}. Correct the URL: a folder's objects begin with it.",
        )


def _keys(client: _Client, bucket: str, prefix: str, allowance: Allowance) -> Iterator[str]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            allowance.add_file()
            allowance.spend(0)
            if not found["Key"].endswith("/"):  # a marker that consoles make of a folder
                yield found["Key"]


def _segments(key: str, path: str) -> list[str]:
    segments = path.split("/")
    if any(segment in ("", ".", "..") or "\\" in segment or "\0" in segment for segment in segments):
        raise ServeError(
            Code.LOAD_FAILED,
            f"The object {key[:200]!r} has a name that no file here may have (.., an empty segment, a backslash). "
            "Rename it.",
        )
    return segments


def _store(client: _Client, bucket: str, key: str, target: Path, allowance: Allowance) -> None:
    answer = client.get_object(Bucket=bucket, Key=key)
    with closing(answer["Body"]) as body:
        allowance.announce(answer.get("ContentLength") or 0)
        with target.open("xb") as file:
            for piece in body.iter_chunks(_PIECE):
                allowance.spend(len(piece))
                file.write(piece)


def _translated(uri: str, error: Exception) -> ServeError:
    response = getattr(error, "response", {})
    code = str(response.get("Error", {}).get("Code", ""))
    is_absent = code in _ABSENT
    return ServeError(
        Code.NOT_FOUND if is_absent else Code.LOAD_FAILED,
        f"{shown(uri)} could not be fetched: {str(error)[:300]}. See to the URL, and to boto3's credentials and "
        "region.",
    )


FETCHER = S3Fetcher()
