"""The page of the viewer as one HTML file: styles and modules inline, and the data of its runs.

A module becomes a function that returns its exports, in the order of imports. It may contain
`import { a, b as c } from './x.js'`, `import d from './x.js'`, and `export function`, `const` or
`class` at the start of a line, `export { a, b }` or `export default`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from pathlib import Path

from ck_pro.local_page import STATIC

PAGE = Path(__file__).parent / "page"
_FOLDERS = {"/static/": STATIC, "/page/": PAGE}
_IMPORT = re.compile(r"""\bimport\s*(?:\{([^}]*)\}|(\w+))\s*from\s*["']([^"']+)["'];?""")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_LIST = re.compile(r"\bexport\s*\{([^}]*)\};?")
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">\s*')
_SCRIPT = re.compile(r'<script type="module" src="([^"]+)"></script>\s*')


def page_html(data: str, title: str = "Run") -> str:
    """Return the page with data as one HTML file, which needs no server and no network.

    Args:
        data: JSON `{"responses": {PATH: RESPONSE, ...}, "messages": [...]}`: the server's response
            to each path, and the messages that integers in `messages` of a call stand for.
        title: title of the document.
    """
    index = (PAGE / "index.html").read_text("utf-8")
    style = "\n".join(_file(name).read_text("utf-8") for name in _STYLE.findall(index))
    [main] = _SCRIPT.findall(index)
    script = _inline(_bundle(_file(main)))
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}"
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; img-src data: blob:">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n"
    )
    body = (
        f'<script type="application/json" id="ck-data">{_inline_json(data)}</script>\n'
        f"<script>{script}</script>\n"
    )
    index = _SCRIPT.sub("", _STYLE.sub("", index))
    before, after = re.split(r"<title>[^<]*</title>\s*", index, maxsplit=1)
    top, bottom = after.split("</body>", 1)
    return f"{before}{head}{top}{body}</body>{bottom}"


def _file(name: str, importer: Path | None = None) -> Path:
    """Return the file of an address in the page or of an import."""
    for prefix, folder in _FOLDERS.items():
        if name.startswith(prefix):
            return folder / name.removeprefix(prefix)
    if importer is None or not name.startswith("./"):
        raise ValueError(f"the page imports {name!r}, which is not one of its files")
    return importer.parent / name


@cache
def _bundle(main: Path) -> str:
    """Return one script from a module and all that it imports."""
    order: dict[Path, int] = {}
    parts: list[str] = []

    def add(path: Path, importers: tuple[Path, ...]) -> int:
        path = path.resolve()
        if path in importers:
            raise ValueError(f"modules of the page import each other: {path.name}")
        if path in order:
            return order[path]
        source = path.read_text("utf-8")
        numbers = {
            name: add(_file(name, path), (*importers, path))
            for _, _, name in _IMPORT.findall(source)
        }
        order[path] = len(order)
        parts.append(f"const m{order[path]} = {_function(source, numbers)};")
        return order[path]

    add(main, ())
    return "\n".join(['"use strict";', *parts])


def _function(source: str, numbers: dict[str, int]) -> str:
    """Return a module as a function call whose value has the exports."""
    exports: dict[str, str] = {}

    def bring(found: re.Match[str]) -> str:
        names, default, module = found.groups()
        if default:
            return f"const {default} = m{numbers[module]}.default;"
        pairs = (re.split(r"\s+as\s+", name.strip()) for name in names.split(",") if name.strip())
        given = ", ".join(": ".join(pair) for pair in pairs)
        return f"const {{ {given} }} = m{numbers[module]};"

    def listed(found: re.Match[str]) -> str:
        for name in found[1].split(","):
            own, _, public = (part.strip() for part in name.partition(" as "))
            if own:
                exports[public or own] = own
        return ""

    def declared(found: re.Match[str]) -> str:
        exports[found[1]] = found[1]
        return ""

    source = _EXPORT.sub(declared, _LIST.sub(listed, _IMPORT.sub(bring, source)))
    if re.search(r"\bexport default\b", source):
        source = re.sub(r"\bexport default\b", "const exported =", source)
        exports["default"] = "exported"
    result = ", ".join(f"{public}: {own}" for public, own in exports.items())
    return f"(() => {{\n{source}\nreturn {{ {result} }};\n}})()"


def _inline(script: str) -> str:
    """Return a script that cannot end its element."""
    return re.sub(r"<(/script|!--)", r"<\\\1", script, flags=re.IGNORECASE)


def _inline_json(data: str) -> str:
    """Return JSON that cannot end its element."""
    return data.replace("<", "\\u003c")


def _hash(text: str) -> str:
    """Return the source expression of an inline text for a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
