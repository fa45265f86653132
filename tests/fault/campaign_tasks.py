"""Five kinds of tasks for the kill campaign on the demo's site, with answers."""

from __future__ import annotations

from typing import Any

from ck_main.demo_site.data import DemoData, confirmation_number, total_rainfall

KINDS = ("compute", "station", "order", "compare", "download")


def make_tasks(count: int, site: str, data: DemoData) -> list[dict[str, Any]]:
    """Lines of a task file: `id, question, answer`, the kinds alternate.

    Args:
        count: number of tasks.
        site: origin of the running site.
        data: the site's data.
    """
    makers = (_compute, _station, _order, _compare, _download)
    tasks = []
    for n in range(count):
        kind, round_ = n % len(makers), n // len(makers)
        question, answer = makers[kind](round_, site, data)
        name = f"{KINDS[kind]}-{round_:03d}"
        tasks.append({"id": name, "question": question, "answer": answer})
    return tasks


def _compute(n: int, site: str, data: DemoData) -> tuple[str, str]:
    limit = 20_000 + 137 * n
    count = sum(k % sum(map(int, str(k))) == 0 for k in range(1, limit + 1))
    return (
        f"How many of the integers from 1 to {limit} are divisible by the sum of their decimal "
        "digits? This needs no web site. Answer with the number only.",
        str(count),
    )


def _station(n: int, site: str, data: DemoData) -> tuple[str, str]:
    station = data.site["stations"][n % len(data.site["stations"])]
    return (
        f"Start at {site}/stations and find out: who is the observer of the station "
        f"{station['name']}? This is question {n}. Answer with the full name only.",
        station["observer"],
    )


def _order(n: int, site: str, data: DemoData) -> tuple[str, str]:
    order = {
        "product": "elm-window",
        "quantity": str(1 + n % 20),
        "name": f"Nora Ellwood {n}",
        "email": f"nora{n}@example.org",
        "delivery": "home",
        "postcode": f"4{n % 10000:04d}",
        "note": "",
    }
    return (
        f"With the form at {site}/order place an order for {order['quantity']} of the instrument "
        f"Elm Window, for {order['name']}, email {order['email']}, home delivery, postcode "
        f"{order['postcode']}, no note; accept the terms of sale. Which confirmation number does "
        "the shop return? Answer with the confirmation number only.",
        confirmation_number(order),
    )


def _compare(n: int, site: str, data: DemoData) -> tuple[str, str]:
    products = data.site["products"]
    one = products[n % len(products)]
    two = products[(n + 1 + n // len(products)) % len(products)]
    lighter = min(one, two, key=lambda p: p["weight_g"])
    return (
        f"Which of the two instruments {one['name']} and {two['name']} weighs less, and by how "
        f"many grams? Read {site}/products/{one['slug']} and {site}/products/{two['slug']} at the "
        "same time. Answer in the form: name, number",
        f"{lighter['name']}, {abs(one['weight_g'] - two['weight_g'])}",
    )


def _download(n: int, site: str, data: DemoData) -> tuple[str, str]:
    station = data.site["stations"][n % len(data.site["stations"])]
    return (
        f"At {site}/downloads there is a file rainfall-2024.csv. What is the total rainfall of the "
        f"station {station['name']} over the months that have a reading, in mm, with one decimal "
        f"place? This is question {n}. Answer with the number only.",
        f"{total_rainfall(station):.1f}",
    )
