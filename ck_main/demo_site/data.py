"""What the demo's web site knows: its data, its search, its orders, its CSV files.

Everything derives from one file, `site.json`, so that a page, the search, a CSV file and the gold
answers of the demo's tasks can never disagree. Nothing is random and nothing reads a clock: the
same request always has the same answer. No HTML and no HTTP here.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ck_pro.exceptions import InputError

PAGE_SIZE = 6
MAX_QUANTITY = 20
NOTE_LENGTH = 300
MONTHS = tuple(f"2024-{month:02d}" for month in range(1, 13))
CSV_FILES = ("rainfall-2024.csv", "price-list.csv", "stations.csv")
SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda product: product["name"],
    "price": lambda product: (product["price"], product["name"]),
    "price-desc": lambda product: (-product["price"], product["name"]),
}
ORDER_FIELDS = ("product", "quantity", "name", "email", "delivery", "postcode", "note")
DELIVERIES = {"home": "Home delivery", "collect": "Collect in the shop"}

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")


class QueryError(InputError):
    """A question to the site's search is malformed; the server answers 400."""


class DemoData:
    """The data of the demo's site, and the answers that need no page.

    Args:
        root: the folder that holds `site.json`.

    Raises:
        InputError: the file is not there, or cannot be read.
    """

    def __init__(self, root: Path):
        try:
            self.site: dict[str, Any] = json.loads((root / "site.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot read the demo's web site in {root} ({error}); "
                "install ck-pro again, or name the folder of the site"
            ) from error
        self.products: dict[str, dict[str, Any]] = {p["slug"]: p for p in self.site["products"]}
        self.stations: dict[str, dict[str, Any]] = {s["slug"]: s for s in self.site["stations"]}
        self.categories = list(dict.fromkeys(p["category"] for p in self.site["products"]))

    def check_order(self, values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The order in normal form, and what is wrong with it: {field: one sentence}."""
        order = {name: " ".join(values.get(name, "").split()) for name in ORDER_FIELDS}
        order["email"] = order["email"].lower()
        errors: dict[str, str] = {}
        product = self.products.get(order["product"])
        if product is None:
            errors["product"] = "Choose an instrument."
        quantity = order["quantity"]
        if not re.fullmatch(r"[0-9]{1,4}", quantity) or not 1 <= int(quantity) <= MAX_QUANTITY:
            errors["quantity"] = f"Quantity must be a number from 1 to {MAX_QUANTITY}."
        elif product is not None and int(quantity) > product["stock"]:
            errors["quantity"] = f"Only {product['stock']} of {product['name']} are in stock."
        else:
            order["quantity"] = str(int(quantity))
        if not order["name"]:
            errors["name"] = "Enter your name."
        if not _EMAIL.fullmatch(order["email"]):
            errors["email"] = "Enter an email address such as name@example.org."
        if order["delivery"] not in DELIVERIES:
            errors["delivery"] = "Choose home delivery or collection."
        if order["delivery"] == "collect":
            order["postcode"] = ""
        elif not re.fullmatch(r"[0-9]{5}", order["postcode"]):
            errors["postcode"] = "Enter a postcode of five digits for home delivery."
        if len(order["note"]) > NOTE_LENGTH:
            errors["note"] = f"The note may have {NOTE_LENGTH} characters at most."
        if not values.get("terms"):
            errors["terms"] = "Accept the terms of sale."
        return order, errors

    def search_products(self, query: Mapping[str, str]) -> dict[str, Any]:
        """One page of the catalogue: {total, page, pages, items}.

        Args:
            query: `q` (words), `category`, `stock` ("1": in stock only), `max` (highest price in
                euros), `sort` (name, price, price-desc), `page` (from 1). All may be missing.

        Raises:
            QueryError: `max`, `sort` or `page` has no usable value.
        """
        sort = query.get("sort") or "name"
        if sort not in SORT_KEYS:
            raise QueryError(f"sort must be one of {', '.join(SORT_KEYS)}")
        highest, page = query.get("max") or "", query.get("page") or "1"
        if not re.fullmatch(r"([0-9]{1,6}(\.[0-9]{1,2})?)?", highest):
            raise QueryError("max must be a price in euros")
        if not re.fullmatch(r"[1-9][0-9]{0,3}", page):
            raise QueryError("page must be a number from 1")
        found = [p for p in self.site["products"] if _matches(p, query, highest)]
        found.sort(key=SORT_KEYS[sort])
        first = (int(page) - 1) * PAGE_SIZE
        return {
            "total": len(found),
            "page": int(page),
            "pages": max(1, -(-len(found) // PAGE_SIZE)),
            "items": found[first : first + PAGE_SIZE],
        }

    def csv_file(self, name: str) -> str:
        """The text of one of `CSV_FILES`. A month without a reading is an empty cell."""
        if name == "rainfall-2024.csv":
            header = ["station", "region", "month", "rainfall_mm"]
            rows = [
                [s["name"], s["region"], month, "" if mm is None else f"{mm:.1f}"]
                for s in self.site["stations"]
                for month, mm in by_month(s)
            ]
        elif name == "price-list.csv":
            header = ["name", "category", "price_eur", "stock"]
            rows = [
                [p["name"], p["category"], f"{p['price']:.2f}", p["stock"]]
                for p in self.site["products"]
            ]
        else:
            header = ["station", "region", "elevation_m", "since", "observer"]
            rows = [[s["name"], *(s[key] for key in header[1:])] for s in self.site["stations"]]
        buffer = io.StringIO()
        csv.writer(buffer).writerows([header, *rows])
        return buffer.getvalue()

    def certificate(self, ticket: str) -> dict[str, str] | None:
        """The certificate {ticket, number, result, signed} of a workshop ticket, or None."""
        wanted = ticket.strip().upper()
        return next((c for c in self.site["certificates"] if c["ticket"] == wanted), None)


def confirmation_number(order: Mapping[str, str]) -> str:
    """The number of an order in normal form: derived from its content, so it never varies."""
    text = "\n".join(order[name] for name in ORDER_FIELDS)
    return f"FH-{int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1_000_000:06d}"


def total_rainfall(station: Mapping[str, Any]) -> float:
    """The rainfall of 2024 in mm over the months that have a reading, to 0.1 mm."""
    total: float = sum(mm for mm in station["rainfall_2024_mm"] if mm is not None)
    return round(total, 1)


def by_month(station: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """The months of 2024 with their rainfall in mm; None where there is no reading."""
    return list(zip(MONTHS, station["rainfall_2024_mm"], strict=True))


def _matches(product: dict[str, Any], query: Mapping[str, str], highest: str) -> bool:
    text = " ".join([product["name"], product["category"], product["summary"]]).lower()
    category = query.get("category")
    return (
        all(word in text for word in query.get("q", "").lower().split())
        and (not category or product["category"] == category)
        and (query.get("stock") != "1" or product["stock"] > 0)
        and (not highest or product["price"] <= float(highest))
    )
