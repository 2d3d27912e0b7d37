"""The configuration: checked, planned, applied as one transaction, confirmed, rolled back.

A configuration is the text of a file, or a `Path` of one, whose name the findings then say.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import types
from .operations import Operations


class Config:
    """`router.config`."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def check(self, yaml: str | Path, *, skip_unsupported: bool = False) -> types.ConfigChecked:
        """Everything that is wrong with a configuration; `ok` when it could be applied."""
        return self._operations.post_config_check(_file(yaml, skip_unsupported))

    def plan(self, yaml: str | Path, *, skip_unsupported: bool = False) -> types.ConfigPlan:
        """The steps that applying it would take; `Invalid` when it has errors."""
        return self._operations.post_config_plan(_file(yaml, skip_unsupported))

    def diff(self, yaml: str | Path | None = None, *, revision: int | None = None) -> str:
        """As `diff -u` prints it: from what runs to a configuration, or from a revision to what runs."""
        body: types.DiffRequestBody = {}
        if yaml is not None:
            body["yaml"] = _file(yaml, False)["yaml"]
        if revision is not None:
            body["revision"] = revision
        return self._operations.post_config_diff(body).diff

    def apply(
        self,
        yaml: str | Path,
        *,
        comment: str | None = None,
        author: str | None = None,
        confirm_seconds: int | None = None,
        skip_unsupported: bool = False,
    ) -> types.Applied:
        """Makes the router run it: whole, or not at all.

        With `confirm_seconds` the router undoes it by itself, unless `confirm` is called within that time.
        """
        file = _file(yaml, skip_unsupported)
        body: types.ApplyRequestBody = {"yaml": file["yaml"], "skip_unsupported": skip_unsupported}
        if "file" in file:
            body["file"] = file["file"]
        if comment is not None:
            body["comment"] = comment
        if author is not None:
            body["author"] = author
        if confirm_seconds is not None:
            body["confirm_seconds"] = confirm_seconds
        return self._operations.post_config_apply(body)

    def confirm(self) -> int:
        """Keeps the change that waits to be confirmed; its revision."""
        return self._operations.post_config_confirm().revision

    def rollback(
        self,
        revision: int | None = None,
        *,
        steps_back: int | None = None,
        comment: str | None = None,
        author: str | None = None,
        confirm_seconds: int | None = None,
    ) -> types.Applied:
        """Goes back to a revision, or so many revisions back; one, when neither is said."""
        body: types.RollbackRequestBody = {}
        if revision is not None:
            body["revision"] = revision
        if steps_back is not None:
            body["steps_back"] = steps_back
        if comment is not None:
            body["comment"] = comment
        if author is not None:
            body["author"] = author
        if confirm_seconds is not None:
            body["confirm_seconds"] = confirm_seconds
        return self._operations.post_config_rollback(body)

    def history(self) -> Iterator[types.Revision]:
        """Applied configurations, newest first."""
        before: int | None = None
        while True:
            page = self._operations.get_config_history(before=before)
            yield from page.revisions
            if page.next is None:
                return
            before = page.next

    def lock(self) -> types.ConfigLock | None:
        """A change that is being done, or that waits to be confirmed."""
        return self._operations.get_config_history(limit=1).lock

    def revision(self, number: int) -> types.RevisionText:
        """One applied configuration with its text."""
        return self._operations.get_config_history_revision(number)

    def dump(self) -> str:
        """What runs, as a file."""
        return self._operations.get_config_dump().yaml

    def running(self) -> dict[str, Any]:
        """What runs, with the keys of the file."""
        return self._operations.get_config()

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of configuration files."""
        return self._operations.get_config_schema()


def _file(yaml: str | Path, skip_unsupported: bool) -> types.ConfigTextBody:
    if isinstance(yaml, Path):
        return {"yaml": yaml.read_text(encoding="utf-8"), "file": str(yaml), "skip_unsupported": skip_unsupported}
    return {"yaml": yaml, "skip_unsupported": skip_unsupported}
