"""Parses the XML of office files, without entities and without the network."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .problem import ToolError, library

_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class OfficeZip:
    """A ZIP file of XML parts.

    Args:
        path: of the file; check it with `check_office_zip` first.
    """

    def __init__(self, path: Path):
        self._etree = library("lxml.etree", "lxml", "Office files")
        self._zip = zipfile.ZipFile(path)
        self.names = self._zip.namelist()

    def root(self, name: str) -> Any:
        """Return the root element of an XML part; None if there is no such part.

        Raises:
            ToolError: it is not well-formed.
        """
        if name not in self.names:
            return None
        parser = self._etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        try:
            return self._etree.fromstring(self._zip.read(name), parser)
        except self._etree.XMLSyntaxError as error:
            raise ToolError(f"the file is damaged: {name}: {error}") from None

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the relationships of a part: id -> (last word of the type, target part or URL)."""
        folder, base = posixpath.split(name)
        root = self.root(f"{folder}/_rels/{base}.rels".lstrip("/"))
        found: dict[str, tuple[str, str]] = {}
        for one in root.iter(_RELATIONSHIP) if root is not None else ():
            target = str(one.get("Target", ""))
            if one.get("TargetMode") != "External":
                inner = target[1:] if target.startswith("/") else posixpath.join(folder, target)
                target = posixpath.normpath(inner)
            found[str(one.get("Id"))] = (str(one.get("Type", "")).rpartition("/")[2], target)
        return found

    def open(self, name: str) -> Any:
        """Open a member for reading bytes."""
        return self._zip.open(name)

    def below(self, *folders: str) -> Iterator[str]:
        """Yield the names of the members in these folders."""
        for name in self.names:
            if name.startswith(folders) and not name.endswith("/"):
                yield name


def relation_id(element: Any, name: str = "id") -> str:
    """Return an attribute such as r:id of an element, or ""."""
    return str(element.get(_ID + name) or "")


def local(element: Any) -> str:
    """Return the name of an element without its namespace; "" for a comment."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
