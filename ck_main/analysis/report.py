"""An analysis as one HTML page: static, without scripts, and without anything from elsewhere.

All texts of runs are escaped. The page has a content policy that forbids scripts and requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

import ck_pro.local_page
from ck_main.analysis.charts import charts
from ck_main.analysis.comparison import Comparison
from ck_main.analysis.facts import MEASURES
from ck_main.analysis.failures import NO_SIGN, RIGHT
from ck_main.analysis.statistics import RESAMPLES
from ck_main.analysis.summary import Summary, TaskFacts
from ck_main.analysis.wording import (
    UNITS,
    number,
    number_range,
    percent,
    percent_range,
    ratio_verdict,
)
from ck_pro.command_line import without_controls
from ck_pro.version import __version__

REPORT_CSS = Path(__file__).with_name("report.css")
_BASE_CSS = Path(ck_pro.local_page.__file__).with_name("static") / "base.css"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_WIDE = ("scores", "comparison", "endings", "tries")
_OPEN_ROWS = 12
_MAX_ROWS = 2000
_COSTLY = 10

Link = Callable[[TaskFacts], str]
"""Returns the address of a task's run in the viewer; "" for none."""


def report_page(
    summaries: Sequence[Summary],
    comparison: Comparison | None = None,
    *,
    styles: Sequence[str] = (),
    link: Link = lambda task: "",
    pages: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the report of one or two outputs.

    Args:
        summaries: one or two.
        comparison: of the two.
        styles: addresses of the style sheets; without any, they are in the page.
        link: see `Link`.
        pages: titles and addresses of other pages.
    """
    title = " and ".join(Path(s.name).name for s in summaries)
    body = _navigation(pages) + "\n".join(_sections(summaries, comparison, link))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_style(styles)}<title>Analysis of {_text(title)}</title>\n</head>\n"
        f'<body>\n<main class="report">\n{body}\n</main>\n</body>\n</html>\n'
    )


def _navigation(pages: Sequence[tuple[str, str]]) -> str:
    links = (f'<a href="{escape(address)}">{_text(title)}</a>' for title, address in pages)
    return f'<nav aria-label="Pages">{" ".join(links)}</nav>' if pages else ""


def _style(styles: Sequence[str]) -> str:
    if styles:
        return "".join(f'<link rel="stylesheet" href="{escape(s)}">\n' for s in styles)
    sheets = "\n".join(path.read_text(encoding="utf-8") for path in (_BASE_CSS, REPORT_CSS))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    return f"{policy}<style>\n{sheets}\n</style>\n"


def _sections(
    summaries: Sequence[Summary], comparison: Comparison | None, link: Link
) -> Iterator[str]:
    yield _header(summaries)
    if not any(s.tasks for s in summaries):
        yield "<p>There is no run in the input.</p>"
        return
    if comparison is not None:
        css = "verdict" if comparison.significant else "verdict noise"
        yield f'<p class="{css}">{_text(comparison.sentence)}</p>'
    yield from (_tiles(s, _letter(s, summaries)) for s in summaries)
    drawn = charts(summaries, comparison)
    wide = [f"<figure>{drawn[n].svg()}</figure>" for n in _WIDE if n in drawn]
    head = f"{wide[0]}<div>{''.join(wide[1:])}</div>"
    narrow = [f"<figure>{drawn[n].svg()}</figure>" for n in MEASURES if n in drawn]
    yield f'<h2>Scores and endings</h2>\n<div class="wide">{head}</div>'
    if comparison is not None:
        yield from _comparison(comparison)
    if narrow:
        yield f'<h2>Costs</h2>\n<div class="plots">{"".join(narrow)}</div>'
    for summary in summaries:
        yield _costs(summary, _letter(summary, summaries))
    for summary in summaries:
        if summary.failed:
            yield _failures(summary, _letter(summary, summaries), link)
    for summary in summaries:
        yield _costly(summary, _letter(summary, summaries), link)
    yield _footer(summaries)


def _letter(summary: Summary, summaries: Sequence[Summary]) -> str:
    return "" if len(summaries) < 2 else "AB"[[*map(id, summaries)].index(id(summary))]


def _header(summaries: Sequence[Summary]) -> str:
    lines = []
    for summary in summaries:
        letter = _letter(summary, summaries)
        mark = f'<span class="{letter.lower()}">{letter}: ' if letter else "<span>"
        lines.append(f"<p>{mark}{_text(summary.name)}</span></p>")
    return f"<header><h1>Analysis</h1>{''.join(lines)}</header>"


def _tiles(summary: Summary, letter: str) -> str:
    overall, interval = summary.overall, summary.overall.interval
    tiles = []
    if interval is not None:
        text = f"score, 95 %: {percent_range(interval)}"
        tiles.append((percent(interval.value), text))
    right = summary.endings.get(RIGHT, 0)
    if overall.scored:
        tiles.append((f"{right:,} of {overall.scored:,}", "scored tasks right"))
    else:
        tiles.append((f"{overall.tasks:,}", "tasks without a score"))
    for measure in ("tokens", "money", "seconds"):
        found = summary.distributions.get(measure)
        if found is not None:
            text = f"{UNITS[measure]} in the median task, {number(found.total)} in all"
            tiles.append((number(found.median), text))
    if summary.cached_share:
        tiles.append((percent(summary.cached_share), "of the prompt tokens from a cache"))
    head = f'<h2 class="{letter.lower()}">{letter}</h2>' if letter else ""
    boxes = "".join(
        f'<div class="tile"><b>{_text(a)}</b><span>{_text(b)}</span></div>' for a, b in tiles
    )
    return f'{head}<div class="tiles">{boxes}</div>'


def _comparison(found: Comparison) -> Iterator[str]:
    rows = [
        (
            UNITS[r.measure],
            number(r.a),
            number(r.b),
            "-" if r.interval is None else f"{r.interval.value:.2f}",
            number_range(r.interval),
            ratio_verdict(r),
        )
        for r in found.ratios
        if r.tasks
    ]
    heads = ("quantity", "A", "B", "B / A", "95 % interval", "verdict")
    yield f"<h2>A and B on {found.tasks:,} common tasks</h2>"
    yield _table(heads, rows, numbers=(1, 2, 3, 4))
    if found.scored:
        cells = [
            ("A right", f"{found.both_right:,}", f"{found.only_a_right:,}"),
            ("A wrong", f"{found.only_b_right:,}", f"{found.both_wrong:,}"),
        ]
        yield "<h2>Right and wrong answers</h2>"
        yield _table(("answers", "B right", "B wrong"), cells, numbers=(1, 2))
    if found.changed:
        changed = [(i, f"{a:.3g}", f"{b:.3g}") for i, a, b in found.changed[:_MAX_ROWS]]
        table = _table(("task", "score in A", "score in B"), changed, numbers=(1, 2))
        yield _folded(f"{len(found.changed):,} tasks with another score", table, len(changed))
    for letter, ids in (("A", found.only_a), ("B", found.only_b)):
        if ids:
            table = _table(("task",), [(i,) for i in ids[:_MAX_ROWS]])
            yield _folded(f"{len(ids):,} tasks only in {letter}", table, len(ids))


def _costs(summary: Summary, letter: str) -> str:
    heads = ("quantity", "median", "p90", "max", "mean", "95 % of the mean", "total", "tasks")
    rows = [
        (
            UNITS[name],
            *(number(v) for v in (d.median, d.p90, d.most, d.mean)),
            number_range(d.interval),
            number(d.total),
            f"{d.n:,}",
        )
        for name, d in summary.distributions.items()
    ]
    title = f"Costs per task of {letter}" if letter else "Costs per task"
    return f"<h2>{title}</h2>{_table(heads, rows, numbers=range(1, 8))}"


def _failures(summary: Summary, letter: str, link: Link) -> str:
    rows = []
    for task in summary.failed[:_MAX_ROWS]:
        ending, wrong = task.run.ending, task.run.ending.wrong
        kind = f"{ending.kind} ({ending.detail})" if ending.detail else ending.kind
        cells = [_linked(task, link), _text(kind)]
        cells.append(_text(f"{wrong.agent}, step {wrong.step}") if wrong else "-")
        sign = f"{wrong.sign}: {wrong.evidence}" if wrong and wrong.evidence else NO_SIGN
        cells.append(_text(sign) if wrong else "-")
        cells.append(_text(ending.evidence))
        rows.append(cells)
    heads = ("task", "ended", "went wrong at", "sign", "evidence of the ending")
    body = "".join(
        f'<tr><td class="id">{r[0]}</td><td class="kind">{r[1]}</td><td class="step">{r[2]}</td>'
        f'<td class="text">{r[3]}</td><td class="text">{r[4]}</td></tr>'
        for r in rows
    )
    table = f'<div class="scroll"><table>{_heads(heads, ())}{body}</table></div>'
    note = (
        '<p class="quiet">The kind and the step are heuristics over status, errors, observations '
        "and pages; the texts beside them are their evidence.</p>"
    )
    title = f"Failed tasks of {letter}" if letter else "Failed tasks"
    folded = _folded(f"{len(summary.failed):,} tasks", table, len(rows))
    return f"<h2>{title}</h2>{note}{folded}"


def _costly(summary: Summary, letter: str, link: Link) -> str:
    measure = "money" if "money" in summary.distributions else "tokens"
    known = [t for t in summary.tasks if t.measures.get(measure) is not None]
    known.sort(key=lambda t: -(t.measures[measure] or 0))
    rows = [
        [_linked(t, link), _text(t.run.ending.kind), *map(_text, _measures(t))]
        for t in known[:_COSTLY]
    ]
    if not rows:
        return ""
    heads = ("task", "ended", *(UNITS[m] for m in MEASURES))
    body = "".join(
        f'<tr><td class="id">{r[0]}</td><td class="kind">{r[1]}</td>'
        + "".join(f'<td class="n">{cell}</td>' for cell in r[2:])
        + "</tr>"
        for r in rows
    )
    of = f" of {letter}" if letter else ""
    table = f"<table>{_heads(heads, range(2, len(heads)))}{body}</table>"
    return f'<h2>Most expensive tasks{of}</h2><div class="scroll">{table}</div>'


def _measures(task: TaskFacts) -> list[str]:
    values = (task.measures.get(m) for m in MEASURES)
    return ["-" if v is None else number(v) for v in values]


def _linked(task: TaskFacts, link: Link) -> str:
    address, title = link(task), escape(without_controls(task.run.question), quote=True)
    if not address:
        return f'<span title="{title}">{_text(task.id)}</span>'
    return f'<a href="{escape(address)}" title="{title}">{_text(task.id)}</a>'


def _footer(summaries: Sequence[Summary]) -> str:
    problems = [p for s in summaries for p in s.problems]
    listed = "".join(f"<li>{_text(p)}</li>" for p in problems[:50])
    lines = f"<p>{len(problems):,} lines or journals cannot be read:</p><ul>{listed}</ul>"
    return (
        f"<footer>{lines if problems else ''}<p>Intervals: Wilson for shares of right answers, "
        f"otherwise BCa bootstrap over tasks ({RESAMPLES:,} resamples). ck-pro {__version__}.</p>"
        "</footer>"
    )


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n">{_text(cell)}</td>' if n in numbers else f"<td>{_text(cell)}</td>"
            for n, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table>{_heads(heads, numbers)}{body}</table></div>'


def _heads(heads: Sequence[str], numbers: Sequence[int]) -> str:
    marks = (' class="n"' if n in numbers else "" for n in range(len(heads)))
    cells = (f"<th{mark}>{_text(h)}</th>" for mark, h in zip(marks, heads, strict=True))
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _folded(title: str, table: str, rows: int) -> str:
    opened = " open" if rows <= _OPEN_ROWS else ""
    return f"<details{opened}><summary>{_text(title)}</summary>{table}</details>"


def _text(text: str) -> str:
    return escape(without_controls(text.replace("\n", " ")))
