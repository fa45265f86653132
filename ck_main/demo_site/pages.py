"""The HTML pages of the demo's web site, built from its data and page templates.

A page template is a text file. Its first line is `title: ...`, the rest is HTML with slots. A
dotted name such as `{{shop.email}}` stands for an escaped value of `site.json`. A plain name such
as `{{team_rows}}` stands for HTML from a function of `SLOTS` or from the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ck_main.demo_site.data import (
    DELIVERIES,
    DemoData,
    by_month,
    confirmation_number,
    total_rainfall,
)
from ck_pro.exceptions import InputError

_SLOT = re.compile(r"\{\{\s*([a-z0-9_.]+)\s*\}\}")
_PAGE_PATH = re.compile(r"(/[a-z0-9]+(-[a-z0-9]+)*)+")


class DemoPages:
    """Renders the pages of the demo's site.

    Args:
        data: data of the site.
        root: folder with `layout.html` and `pages/`.

    Raises:
        InputError: the layout cannot be read.
    """

    def __init__(self, data: DemoData, root: Path):
        self.data = data
        self.root = root
        self.layout = _read(root / "layout.html")

    def page(self, name: str, slots: Mapping[str, str] | None = None) -> str:
        """Render the template `pages/<name>.html`; `slots` has HTML by slot name."""
        head, _, body = _read(self.root / "pages" / f"{name}.html").partition("\n")
        given = dict(slots or {})
        title = self._fill(head.removeprefix("title:").strip(), given)
        shop = escape(self.data.site["shop"]["name"])
        full_title = title if title == shop else f"{title} | {shop}"
        if name.startswith("frames/"):
            return self._fill(body, given)
        return self._fill(
            self.layout, {"title": full_title, "content": self._fill(body, given), **given}
        )

    def static_page(self, path: str) -> str | None:
        """Render the page of a plain path such as `/about`; None if it does not exist."""
        name = "home" if path == "/" else path[1:]
        if path != "/" and not _PAGE_PATH.fullmatch(path):
            return None
        if name.partition("/")[0] in ("templates", "frames"):
            return None
        return self.page(name) if (self.root / "pages" / f"{name}.html").is_file() else None

    def product_page(self, slug: str) -> str | None:
        """Render the page of a product; None if it does not exist."""
        product = self.data.products.get(slug)
        if product is None:
            return None
        stock = product["stock"]
        facts = [*product["specs"], ["Weight", f"{product['weight_g']} g"]]
        facts += [["Warranty", _count(product["warranty_years"], "year")]]
        return self.page(
            "templates/product",
            {
                "name": escape(product["name"]),
                "category": escape(product["category"]),
                "summary": escape(product["summary"]),
                "price": _price(product),
                "availability": f"{stock} in stock" if stock else "Out of stock",
                "reviews": _count(product["reviews"], "review"),
                "spec_rows": _fact_rows(facts),
                "slug": slug,
            },
        )

    def station_page(self, slug: str) -> str | None:
        """Render the page of a station; None if it does not exist."""
        station = self.data.stations.get(slug)
        if station is None:
            return None
        facts = [
            ["Region", station["region"]],
            ["Elevation", f"{station['elevation_m']} m"],
            ["Readings since", station["since"]],
            ["Observer", station["observer"]],
            ["Instruments", ", ".join(station["instruments"])],
        ]
        months = [[month, _reading(mm)] for month, mm in by_month(station)]
        return self.page(
            "templates/station",
            {
                "name": escape(station["name"]),
                "fact_rows": _fact_rows(facts),
                "month_rows": _rows(months),
                "total": f"{total_rainfall(station):.1f}",
            },
        )

    def compare_page(self, first: str, second: str) -> str:
        """Render the comparison page, with a table if both products exist."""
        one, two = self.data.products.get(first), self.data.products.get(second)
        table = "<p>Choose two instruments and press Compare.</p>"
        if one and two:
            table = _compare_table(one, two)
        return self.page(
            "templates/compare",
            {
                "first_options": self.product_options(first),
                "second_options": self.product_options(second),
                "comparison": table,
            },
        )

    def certificate_frame(self, ticket: str | None) -> str:
        """Render the frame of the calibration page.

        Args:
            ticket: the requested ticket; None for the empty form.
        """
        answer = "<p>Enter the number on your workshop ticket.</p>"
        if ticket is not None:
            found = self.data.certificate(ticket)
            asked = escape(ticket.strip() or "that")
            answer = f'<p role="status">No certificate is known for {asked}.</p>'
            if found:
                facts = [["Ticket", found["ticket"]], ["Certificate number", found["number"]]]
                facts += [["Result", found["result"]], ["Signed by", found["signed"]]]
                answer = f'<table class="facts">{_fact_rows(facts)}</table>'
        return self.page("frames/certificate", {"answer": answer, "ticket": escape(ticket or "")})

    def order_page(self, values: Mapping[str, str], errors: Mapping[str, str]) -> str:
        """Render the order form with the entered values and the errors, both by field."""
        listed = "".join(f"<li>{escape(text)}</li>" for text in errors.values())
        slots = {
            "options": self.product_options(values.get("product", "")),
            "errors": f"<p>Please correct the following:</p><ul>{listed}</ul>" if errors else "",
            "errors_hidden": "" if errors else "hidden",
            "terms_checked": "checked" if values.get("terms") else "",
        }
        for name in ("quantity", "name", "email", "postcode", "note"):
            slots[f"{name}_value"] = escape(values.get(name, ""))
        for kind in DELIVERIES:
            slots[f"{kind}_checked"] = "checked" if values.get("delivery") == kind else ""
        return self.page("templates/order", slots)

    def confirmed_page(self, order: Mapping[str, str]) -> str:
        """Render the confirmation of a normalised order, with its number."""
        product = self.data.products[order["product"]]
        facts = [
            ["Instrument", product["name"]],
            ["Quantity", order["quantity"]],
            ["Total", f"€{product['price'] * int(order['quantity']):.2f}"],
            ["Name", order["name"]],
            ["Delivery", DELIVERIES[order["delivery"]]],
        ]
        slots = {"number": confirmation_number(order), "fact_rows": _fact_rows(facts)}
        return self.page("templates/confirmed", slots)

    def product_options(self, chosen: str) -> str:
        """Render the `<option>` elements of all products by name, one of them selected."""
        ordered = sorted(self.data.products.values(), key=lambda p: p["name"])
        return "".join(
            f'<option value="{p["slug"]}"{" selected" if p["slug"] == chosen else ""}>'
            f"{escape(p['name'])}</option>"
            for p in ordered
        )

    def _fill(self, template: str, given: Mapping[str, str]) -> str:
        """Fill the slots of `template` with HTML; raise KeyError for an unknown slot."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in given:
                return given[name]
            if "." not in name:
                return SLOTS[name](self)
            found: Any = self.data.site
            for key in name.split("."):
                found = found[key]
            return escape(str(found))

        return _SLOT.sub(value, template)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise InputError(f"cannot read a page of the demo's web site: {error}") from error


def _reading(mm: float | None) -> str:
    return "no reading" if mm is None else f"{mm:.1f}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _price(product: Mapping[str, Any]) -> str:
    return f"€{product['price']:.2f}"


def _rows(rows: Iterable[Sequence[Any]]) -> str:
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return "".join(f"<tr>{row}</tr>" for row in cells)


def _fact_rows(facts: Iterable[Sequence[Any]]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>'
        for name, value in facts
    )


def _compare_table(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    ones, twos = dict(one["specs"]), dict(two["specs"])
    rows = [("Category", one["category"], two["category"]), ("Price", _price(one), _price(two))]
    rows += [(key, ones.get(key, "-"), twos.get(key, "-")) for key in dict.fromkeys([*ones, *twos])]
    rows += [("Weight", f"{one['weight_g']} g", f"{two['weight_g']} g")]
    rows += [("Reviews", str(one["reviews"]), str(two["reviews"]))]
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(a)}</td><td>{escape(b)}</td></tr>'
        for name, a, b in rows
    )
    head = "".join(f'<th scope="col">{escape(p["name"])}</th>' for p in (one, two))
    return f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"


def _station_rows(pages: DemoPages) -> str:
    return "".join(
        f'<tr><td><a href="/stations/{s["slug"]}">{escape(s["name"])}</a></td>'
        f"<td>{escape(s['region'])}</td><td>{s['elevation_m']}</td><td>{s['since']}</td>"
        f"<td>{total_rainfall(s):.1f}</td></tr>"
        for s in pages.data.site["stations"]
    )


def _featured(pages: DemoPages) -> str:
    chosen = [pages.data.products[slug] for slug in pages.data.site["featured"]]
    return "".join(
        f'<li class="card"><h3><a href="/products/{p["slug"]}">{escape(p["name"])}</a></h3>'
        f'<p>{escape(p["summary"])}</p><p class="price">{_price(p)}</p></li>'
        for p in chosen
    )


def _news(pages: DemoPages) -> str:
    return "".join(
        f"<article><h3>{escape(title)}</h3><p><time>{day}</time> {escape(text)}</p></article>"
        for day, title, text in pages.data.site["news"]
    )


def _team_rows(pages: DemoPages) -> str:
    return _rows([p["name"], p["role"], p["since"], p["note"]] for p in pages.data.site["team"])


def _faq(pages: DemoPages) -> str:
    return "".join(
        f"<details><summary>{escape(question)}</summary><p>{escape(answer)}</p></details>"
        for question, answer in pages.data.site["faq"]
    )


def _categories(pages: DemoPages) -> str:
    return "".join(f"<option>{escape(name)}</option>" for name in pages.data.categories)


SLOTS: dict[str, Callable[[DemoPages], str]] = {
    "station_rows": _station_rows,
    "featured": _featured,
    "news_items": _news,
    "team_rows": _team_rows,
    "hours_rows": lambda pages: _fact_rows(pages.data.site["hours"]),
    "faq_items": _faq,
    "category_options": _categories,
    "home_delivery_rows": lambda pages: _rows(pages.data.site["delivery"]["home"]),
    "island_rows": lambda pages: _rows(pages.data.site["delivery"]["islands"]),
    "repair_rows": lambda pages: _rows(pages.data.site["repairs"]),
}
