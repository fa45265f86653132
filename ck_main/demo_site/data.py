"""The data of the demo's web site: products, stations, search, orders, CSV files.

All of it derives from one file, `site.json`, so pages, search, CSV files and the right answers of
the demo's tasks always agree. The same request always gets the same response: the code uses
neither random numbers nor a clock.
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
    """A search query is malformed; the server responds with status 400."""


class DemoData:
    """The data of the demo's site.

    Args:
        root: folder with `site.json`.

    Raises:
        InputError: the file is missing or unreadable.
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
        """Return the normalised order, and its errors by field, each one sentence."""
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
        """Return one page of the catalogue: {total, page, pages, items}.

        Args:
            query: `q` (words), `category`, `stock` ("1": in stock only), `max` (highest price in
                euros), `sort` (name, price, price-desc), `page` (from 1); all optional.

        Raises:
            QueryError: `max`, `sort` or `page` is invalid.
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
        """Return the text of one of `CSV_FILES`; a month without a reading is an empty cell."""
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
        """Return the certificate {ticket, number, result, signed} of a workshop ticket, or None."""
        wanted = ticket.strip().upper()
        return next((c for c in self.site["certificates"] if c["ticket"] == wanted), None)


def confirmation_number(order: Mapping[str, str]) -> str:
    """Return the number of a normalised order, derived from its content."""
    text = "\n".join(order[name] for name in ORDER_FIELDS)
    return f"FH-{int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1_000_000:06d}"


def total_rainfall(station: Mapping[str, Any]) -> float:
    """Return the rainfall of 2024 in mm, rounded to 0.1 mm; ignore months without a reading."""
    total: float = sum(mm for mm in station["rainfall_2024_mm"] if mm is not None)
    return round(total, 1)


def by_month(station: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Return the months of 2024 with their rainfall in mm; None for a month without a reading."""
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
