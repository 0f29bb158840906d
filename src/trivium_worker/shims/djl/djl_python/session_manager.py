"""State that a handler keeps from request to request: values by name in a folder of a session's own.

Sessions are files, so that all workers of one machine find them. The files hold pickles, which run code when they are
read: folders are the user's alone (0700, files 0600), and those that others could write into are refused.
"""

import contextlib
import errno
import logging
import os
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Mapping
from typing import Any

from trivium_worker import pickles

_SHARED_MEMORY = "/dev/shm"
_FOLDER = "djl_sessions"
_EXPIRATION = ".expiration_ts"
_SECONDS = 20 * 60
_BEGINNING = 60
"""Seconds in which a session has its first value, that of its end, unless whoever made it has died."""

_NEW = "NEW_SESSION"
_ID = re.compile(r"[0-9a-f-]{36}\Z")


class Session:
    """One session: an id, a time at which it expires, and the values in its folder."""

    def __init__(self, session_id: str, session_root: str, expiration_ts: float | None = None) -> None:
        self.session_id = session_id
        self.files_path = os.path.join(session_root, session_id)
        self.expiration_ts: float | None = self.get(_EXPIRATION) if expiration_ts is None else expiration_ts

    def put(self, key: str, value: Any) -> None:
        """Keep a value, which is pickled. Whoever reads it meanwhile gets the old one or the new one, whole."""
        path = self._path(key)
        for fault, is_so in (
            (errno.EISDIR, os.path.isdir(path)),
            (errno.ENOENT, not os.path.isdir(self.files_path)),
        ):
            if is_so:
                raise OSError(fault, os.strerror(fault), path)
        descriptor, scratch = tempfile.mkstemp(prefix=".put_", dir=self.files_path)
        try:
            with open(descriptor, "wb") as file:
                pickles.written(value, file)
            os.replace(scratch, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # the session was removed meanwhile
                os.unlink(scratch)
            raise

    def get(self, key: str, d: Any = None) -> Any:
        """Return the value of a key, or `d` where there is none."""
        try:
            with open(self._path(key), "rb") as file:
                return pickles.read(file)  # of a folder that nobody else can write into
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return d

    def get_as_numpy(self, key: str, shape: Any, dtype: Any = "float32", create: bool = False) -> Any:
        """Return an array whose memory is the file of a key, shared by all who open it; `create` makes it anew."""
        import numpy

        path = self._path(key)
        if create:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        return numpy.memmap(path, dtype=dtype, mode="r+", shape=shape)

    def remove(self) -> bool:
        """Remove the session with all its values; ValueError where it is gone."""
        if not os.path.exists(self.files_path):
            raise ValueError(f"session directory does not exist: {self.session_id}")
        logging.info("closing session: %s", self.session_id)
        shutil.rmtree(self.files_path, ignore_errors=True)
        return True

    def _path(self, key: str) -> str:
        return os.path.join(self.files_path, key.replace("/", "-"))


class SessionManager:
    """The sessions below one folder: `sessions_path` of the model's properties, or one in shared memory."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        if properties.get("sessions_s3url"):
            raise NotImplementedError(
                f"sessions_s3url={properties['sessions_s3url']}: sessions are not copied to S3 in "
                "this version. Remove it, and let sessions_path name a folder that outlives the "
                "machine."
            )
        self.expiration = int(properties.get("sessions_expiration", str(_SECONDS)))
        self.sessions_path: str = properties.get("sessions_path", default_path())
        os.makedirs(self.sessions_path, mode=0o700, exist_ok=True)
        _refuse_what_others_write(self.sessions_path)

    def create_session(self) -> Session:
        """Begin a session, after those that have expired have been removed."""
        self._remove_expired()
        expires = time.time() + self.expiration
        session = Session(str(uuid.uuid4()), self.sessions_path, expires)
        os.mkdir(session.files_path, 0o700)
        try:
            session.put(_EXPIRATION, expires)
        except BaseException:
            session.remove()
            raise
        return session

    def get_session(self, session_id: str | None) -> Session | None:
        """Return a session; None for one that has expired, for `NEW_SESSION` and for no id. ValueError for another."""
        if not session_id or session_id == _NEW:
            return None
        session = self._known(session_id)
        if time.time() > (session.expiration_ts or 0):
            logging.info("session has expired: %s", session_id)
            return None
        return session

    def close_session(self, session_id: str | None) -> None:
        """End a session; ValueError for one that is not there."""
        if not session_id:
            raise ValueError(f"invalid session_id: {session_id}")
        self._known(session_id).remove()

    def _known(self, session_id: str) -> Session:
        """Return the session of this folder; an id comes from a client and is no path."""
        session = Session(session_id, self.sessions_path) if _ID.match(session_id) else None
        if (
            session is None or session.expiration_ts is None
        ):  # never there, removed, or not yet given to anybody
            raise ValueError(f"session not found: {session_id}")
        return session

    def _remove_expired(self) -> None:
        now = time.time()
        for name in os.listdir(self.sessions_path):
            if not _ID.match(name):
                continue
            try:
                session = Session(name, self.sessions_path)
                expires = session.expiration_ts
                if expires is None:  # another worker makes it at this moment, or did not get far
                    expires = os.path.getmtime(session.files_path) + self.expiration + _BEGINNING
                if now > expires:
                    session.remove()
            except (OSError, ValueError):  # another worker was quicker
                continue


def default_path() -> str:
    """Return the folder of sessions that no property names: in shared memory where the system has some."""
    return os.path.join(_SHARED_MEMORY if os.path.exists(_SHARED_MEMORY) else tempfile.gettempdir(), _FOLDER)


def _refuse_what_others_write(folder: str) -> None:
    about = os.stat(folder)
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022:
        raise PermissionError(
            f"{folder} belongs to user {about.st_uid} and has the mode "
            f"{stat.S_IMODE(about.st_mode):o}: who can write there runs code here, since sessions "
            f"are pickled. Set sessions_path to a folder of user {os.geteuid()} with the mode 700."
        )
