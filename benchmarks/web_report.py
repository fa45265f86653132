"""Print the measurements of `web.py` as tables, and plot them.

python benchmarks/web_report.py measured.json [--plot docs/web_benchmark.svg]
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import click
from web_pages import interactive

_FLOORS = ("floor: click + walk", "floor: mouse + walk")
_LINE_IDS = (
    r"\[\d+\] [A-Za-z]+ '(.*)'",  # web_server
    r"\[\w+\] \w+ '(.*?)'",  # browsergym
    r"- \w+ \"(.*?)\".*\[ref=\w+\]",  # playwright-mcp
)


def usable(contender: str, text: str, page: str, in_view: list[str]) -> dict[str, int]:
    """Count the interactive elements that an observation makes usable by id.

    Args:
        contender: its name.
        text: the observation.
        page: a name of `web_pages.PAGES`.
        in_view: names of the elements in the viewport.

    Returns:
        `view` of `in_view` in the viewport, and `page` of `all` on the page.
    """
    found = _browser_use_names(text) if contender == "browser-use" else _names(text)
    all_names = interactive(page)
    expected = [name for name in in_view if name in all_names]
    return {
        "view": sum(name in found for name in expected),
        "in_view": len(expected),
        "page": sum(name in found for name in all_names),
        "all": len(all_names),
    }


def _names(text: str) -> set[str]:
    return {name for pattern in _LINE_IDS for name in re.findall(pattern, text)}


def _browser_use_names(text: str) -> set[str]:
    """Parse lines `[7]<a ... />`, each followed by the element's text on indented lines."""
    found: set[str] = set()
    element_depth: int | None = None  # of the last element, until its text follows
    previous = ""
    for line in text.split("\n"):
        depth, text_of_line = len(line) - len(line.lstrip("\t")), line.strip()
        element = re.match(r"(?:\|[^|]*\|)?\*?\[\d+\]<(\w+)", text_of_line)
        if element:
            element_depth = depth
            if re.search(r"type=(checkbox|radio)\b", text_of_line):
                element_depth = depth - 1  # its label is the next line
            elif element[1] in ("input", "select", "textarea"):
                found.add(previous)  # its label is the previous line
        elif text_of_line:
            if element_depth is not None and depth > element_depth:
                found.add(text_of_line)
            element_depth = None
            previous = text_of_line
    return found


def table(record: dict[str, Any]) -> str:
    """Return all measurements as text."""
    pages = list(record["pages"])
    names = list(record["opening"])
    width = max(map(len, names)) + 2
    lines = ["click + observation, median ms (times web_server)", _head(width, pages)]
    for name in names:
        cells = [_time_cell(record["pages"][page]["click"], name) for page in pages]
        lines.append(f"{name:{width}}" + "".join(f"{cell:>22}" for cell in cells))
    lines.append("")
    for floor in _FLOORS:
        medians = [_medians(record["pages"][page]["click"]) for page in pages]
        ratios = [
            f"{p} {m['web_server'] / m[floor]:.2f}" for p, m in zip(pages, medians, strict=True)
        ]
        lines.append(f"web_server / {floor}: {'  '.join(ratios)}")
    for page in pages:
        for failures in record["pages"][page]["failures"].values():
            first = failures[0].splitlines()[0][:120]
            lines.append(f"failed on {page}: {len(failures)} x {first}")
    lines += ["", "tokens (o200k); usable by id in the viewport; on the whole page"]
    lines.append(_head(width, pages))
    for name in names:
        if any(name in record["pages"][page]["tokens"] for page in pages) and "+" not in name:
            cells = [_text_cell(record["pages"][page], name) for page in pages]
            lines.append(f"{name:{width}}" + "".join(f"{cell:>22}" for cell in cells))
    lines += ["", "new session with its first page, median ms"]
    for name, times in record["opening"].items():
        lines.append(f"{name:{width}}{statistics.median(times):8.0f}")
    lines += ["", "memory in MB by number of sessions, each with the article"]
    for name, sizes in record["memory"].items():
        listed = "".join(f"{count}: {size:.0f}".rjust(12) for count, size in sizes.items())
        lines.append(f"{name:{width}}{listed}")
    return "\n".join(lines)


def _time_cell(times: dict[str, list[float]], name: str) -> str:
    if not times.get(name):
        return "-"
    median = statistics.median(times[name])
    return f"{median:.0f} ({median / statistics.median(times['web_server']):5.2f})"


def _head(width: int, pages: list[str]) -> str:
    return " " * width + "".join(f"{page:>22}" for page in pages)


def _text_cell(measured: dict[str, Any], name: str) -> str:
    if name not in measured["tokens"]:
        return "-"
    tokens, found = measured["tokens"][name], measured["usable"][name]
    shown = "-" if tokens is None else str(tokens)
    view = f"{found['view']}/{found['in_view']}"
    return f"{shown} {view} {found['page']}/{found['all']}"


def plot(record: dict[str, Any], path: str) -> None:
    """Plot the medians of the clicks and the tokens, on logarithmic scales, by page.

    Raises:
        click.ClickException: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise click.ClickException(
            'the plot needs matplotlib: pip install "ck-pro[bench]" or matplotlib'
        ) from None
    matplotlib.use("svg" if path.endswith(".svg") else "agg")
    from matplotlib import pyplot

    pages = list(record["pages"])
    names = [name for name in record["opening"] if "+ jpeg" not in name]
    colors = {name: f"C{i}" for i, name in enumerate(names)}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6))
    _bars(left, {page: _medians(record["pages"][page]["click"]) for page in pages}, colors)
    left.set_title("Click and next observation, ms")
    readers = {name: color for name, color in colors.items() if "," not in name}
    _bars(right, {page: record["pages"][page]["tokens"] for page in pages}, readers)
    right.set_title("Observation, tokens")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path)
    pyplot.close(figure)


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items() if values}


def _bars(axes: Any, values: dict[str, dict[str, Any]], colors: dict[str, str]) -> None:
    """Draw a group of bars for each page, with a bar for each contender that has a value."""
    names = [name for name in colors if any(value.get(name) for value in values.values())]
    size = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [group + i * size for group in range(len(values))]
        heights = [value.get(name) or 0 for value in values.values()]
        axes.bar(places, heights, size, label=name, color=colors[name])
    axes.set_xticks([group + 0.4 - size / 2 for group in range(len(values))], list(values))


@click.command()
@click.argument("measured", type=click.Path(exists=True, dir_okay=False))
@click.option("--plot", "path", type=click.Path(), help="Write the plot to this .svg or .png file.")
def main(measured: str, path: str | None) -> None:
    """Print the file of `web.py --json`, and plot it with --plot."""
    record = json.loads(Path(measured).read_text(encoding="utf-8"))
    print(table(record))
    if path:
        plot(record, path)


if __name__ == "__main__":
    main()
