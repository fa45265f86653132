"""What the demo's site answers: search, orders, certificates, the late list, files."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.demo_site.data import DemoData, QueryError, confirmation_number
from ck_main.demo_site.site import DEFAULT_ROOT

pytestmark = pytest.mark.integration

DATA = DemoData(DEFAULT_ROOT)
ORDER = {
    "product": "gannet-200",
    "quantity": "3",
    "name": "Ada Finch",
    "email": "ada@example.org",
    "delivery": "home",
    "postcode": "40127",
    "note": "",
    "terms": "yes",
}


def test_the_search_filters_sorts_and_pages(visitor):
    ask = {"category": "Rain gauges", "stock": "1", "sort": "price", "page": "2"}
    found = visitor.get("/api/products", params=ask).json()
    assert (found["total"], found["page"], found["pages"]) == (8, 2, 2)
    assert [p["name"] for p in found["items"]] == ["Gill Heated", "Spate Weighing"]
    cheap = visitor.get("/api/products", params={"q": "TIPPING gauge", "max": "125.5"}).json()
    assert [p["name"] for p in cheap["items"]] == ["Cascade Wireless", "Rill Tipping"]
    assert visitor.get("/api/products?q=submarine").json()["items"] == []


@pytest.mark.parametrize("query", ["page=0", "page=x", "max=-1", "max=cheap", "sort=colour"])
def test_a_malformed_search_is_refused(visitor, query):
    reply = visitor.get(f"/api/products?{query}")
    assert reply.status_code == 400 and reply.json()["error"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "q": st.sampled_from(["", "a", "gauge", "wind tip"]) | st.text(max_size=5),
            "category": st.sampled_from(["", *DATA.categories]),
            "stock": st.sampled_from(["", "1"]),
            "max": st.sampled_from(["", "60", "99.5"]) | st.text(max_size=4),
            "sort": st.sampled_from(["", "name", "price", "price-desc"]),
        },
    )
)
def test_the_pages_of_a_search_hold_every_product_once(query):
    try:
        first = DATA.search_products(query)
    except QueryError:
        return
    numbers = range(1, first["pages"] + 1)
    items = [p for n in numbers for p in DATA.search_products({**query, "page": str(n)})["items"]]
    assert len(items) == first["total"] == len({p["slug"] for p in items})
    assert not DATA.search_products({**query, "page": str(first["pages"] + 1)})["items"]


def test_an_order_is_confirmed_with_a_number_that_never_varies(visitor):
    numbers = set()
    for name in ("Ada Finch", "  Ada   Finch "):
        reply = visitor.post("/order", data={**ORDER, "name": name})
        assert reply.status_code == 303
        page = visitor.get(reply.headers["Location"])
        assert page.status_code == 200 and "€636.00" in page.text
        numbers |= set(re.findall(r"FH-\d{6}", page.text))
    assert len(numbers) == 1
    other = visitor.post("/order", data={**ORDER, "quantity": "4"}).headers["Location"]
    assert not numbers & set(re.findall(r"FH-\d{6}", visitor.get(other).text))


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("product", "", "Choose an instrument."),
        ("product", "submarine", "Choose an instrument."),
        ("quantity", "0", "Quantity must be a number from 1 to 20."),
        ("quantity", "many", "Quantity must be a number from 1 to 20."),
        ("quantity", "8", "Only 7 of Gannet 200 are in stock."),
        ("name", " ", "Enter your name."),
        ("email", "ada@home", "Enter an email address such as name@example.org."),
        ("delivery", "", "Choose home delivery or collection."),
        ("postcode", "4012", "Enter a postcode of five digits for home delivery."),
        ("note", "x" * 301, "The note may have 300 characters at most."),
        ("terms", "", "Accept the terms of sale."),
    ],
)
def test_an_order_with_a_fault_comes_back_with_what_was_entered(visitor, field, value, sentence):
    reply = visitor.post("/order", data={**ORDER, field: value})
    assert reply.status_code == 422
    assert sentence in reply.text
    assert 'value="ada@example.org"' in reply.text or field == "email"


def test_entered_text_is_escaped(visitor):
    reply = visitor.post("/order", data={"name": '"><script>x</script>{{shop.email}}'})
    assert "<script>x" not in reply.text
    assert "&quot;&gt;&lt;script&gt;x" in reply.text and "{{shop.email}}" in reply.text
    frame = visitor.get("/frames/certificate", params={"ticket": "<b>{{team_rows}}"}).text
    assert "&lt;b&gt;" in frame.lower() and "Amara" not in frame


def test_a_collected_order_needs_no_postcode(visitor):
    order = {**ORDER, "delivery": "collect", "postcode": "nowhere"}
    assert visitor.post("/order", data=order).status_code == 303


def test_a_link_chooses_the_instrument(visitor):
    page = visitor.get("/order?product=elm-window").text
    assert page.count(" selected") == 1 and '"elm-window" selected' in page


@given(st.dictionaries(st.sampled_from(sorted(ORDER)), st.text(max_size=30)))
def test_normal_form_is_final(changes):
    order, errors = DATA.check_order({**ORDER, **changes})
    again, still = DATA.check_order({**order, "terms": "yes"})
    assert set(still) <= set(errors)
    if not errors:
        assert again == order
        assert confirmation_number(again) == confirmation_number(order)


def test_the_late_list_and_the_certificates_belong_together(visitor):
    board = visitor.get("/api/workshop").json()
    tickets = {t["ticket"] for t in board["tickets"]}
    certificates = visitor.site.data.site["certificates"]
    assert {c["ticket"] for c in certificates} <= tickets
    assert {t["instrument"] for t in board["tickets"]} <= {p["name"] for p in DATA.site["products"]}
    assert "W-2041" not in visitor.get("/service/workshop").text
    frame = visitor.get("/frames/certificate", params={"ticket": " w-2041 "}).text
    assert "C-7725" in frame
    assert "No certificate is known" in visitor.get("/frames/certificate?ticket=").text
    assert "No certificate is known" in visitor.get("/frames/certificate?ticket=W-1").text


def test_the_trade_code_is_given_only_to_those_who_confirm(visitor):
    assert visitor.post("/api/trade-code", data={}).status_code == 403
    reply = visitor.post("/api/trade-code", data={"confirmed": "yes"})
    assert reply.json()["code"] == DATA.site["trade"]["code"]
    assert DATA.site["trade"]["code"] not in visitor.get("/trade").text
    assert visitor.get("/api/trade-code").status_code == 404


def test_the_comparison_shows_both(visitor):
    page = visitor.get("/compare?a=gannet-200&b=plover-vane").text
    assert "465 g" in page and "720 g" in page
    assert "press Compare" in visitor.get("/compare?a=gannet-200&b=none").text


def test_the_files_agree_with_the_pages(visitor):
    reply = visitor.get("/downloads/rainfall-2024.csv")
    assert reply.headers["Content-Disposition"] == 'attachment; filename="rainfall-2024.csv"'
    rows = list(csv.DictReader(io.StringIO(reply.content.decode("utf-8"))))
    assert len(rows) == 120
    assert sum(row["rainfall_mm"] != "" for row in rows) == 116
    table = visitor.get("/stations").text
    for station in DATA.stations.values():
        mine = [r["rainfall_mm"] for r in rows if r["station"] == station["name"]]
        total = f"{sum(float(mm) for mm in mine if mm):.1f}"
        assert f"<td>{total}</td>" in table
        assert f"<td>{total}</td>" in visitor.get(f"/stations/{station['slug']}").text
    prices = visitor.get("/downloads/price-list.csv").content.decode("utf-8")
    assert len(list(csv.DictReader(io.StringIO(prices)))) == len(DATA.products)
    first = csv.DictReader(io.StringIO(visitor.get("/downloads/stations.csv").text))
    assert next(first)["observer"] == "Ines Calloway"


def test_the_data_is_consistent():
    names = {p["name"] for p in DATA.site["products"]}
    assert len(names) == len(DATA.products) == len(DATA.site["products"])
    for station in DATA.stations.values():
        assert set(station["instruments"]) <= names
        assert len(station["rainfall_2024_mm"]) == 12
    assert set(DATA.site["featured"]) <= set(DATA.products)
    assert {row[0] for row in DATA.site["repairs"]} == set(DATA.categories)
