"""Decides which format a path is of, and says what to do with one of none, or of another than its folder is."""

import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trivium.types.errors import Code, ServeError, said_by
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import Format, SupportsHint
from trivium.types.spec import InvalidModel


class FormatClaims:
    """Asks the formats of a server, in their order, for a path. Looks at the disk: it may take long."""

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats

    def of(self, path: Path) -> Format:
        """Return the first format that claims a path. Raises NOT_FOUND, saying what there is, for one of none."""
        form = next((form for form in self._formats if form.claims(path)), None)
        if form is None:
            raise ServeError(Code.NOT_FOUND, self.unclaimed(path))
        return form

    def with_way_out(self, one: InvalidModel, folder: Path, form: Format) -> InvalidModel:
        """Return a model that the format of its folder cannot read, with what to do where another one could."""
        if one.root == folder:
            return one
        other = next((each for each in self._formats if each is not form and each.claims(one.root)), None)
        if other is None:
            return one
        found = f"a folder has models of one format ({form.name}), and this is one of {other.name}"
        hint = f"Give each as a path of its own: trivium serve {folder}/*"
        added = Finding(Severity.ERROR, str(one.root), None, "", found, "", hint)
        return replace(one, findings=(*one.findings, added))

    def unclaimed(self, path: Path) -> str:
        """Return what is said of a path that no format claims: what it holds, and what the formats look for."""
        expected = "; ".join(f"{form.name}: {form.expects}" for form in self._formats)
        inside = ""
        try:
            if stat.S_ISDIR(path.stat().st_mode):
                entries = sorted(entry.name for entry in path.iterdir())[:10]
                inside = f" It holds: {', '.join(entries)}." if entries else " The folder is empty."
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                return f"{said_by(error)}: {path}."
            where = "" if path.is_absolute() else f", which begins at {Path.cwd()}"
            return f"{said_by(error)}: {path}. Correct the path{where}."
        hints = (form.hint(path) for form in self._formats if isinstance(form, SupportsHint))
        inside += "".join(f" {hint}" for hint in hints if hint)
        return f"Nothing to serve was found in {path}.{inside} Known formats are: {expected}."
