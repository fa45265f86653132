"use strict";

// The catalogue asks the server for one page of results at each change and keeps its state in the
// address, so that a link to a search can be shared.
const form = document.getElementById("search");
const list = document.getElementById("results");
const summary = document.getElementById("summary");
const pager = document.getElementById("pager");
const previous = document.getElementById("previous");
const next = document.getElementById("next");
const where = document.getElementById("where");
let page = 1;
let asked = 0;

function query() {
  const values = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value.trim()) values.set(name, value.trim());
  }
  if (page > 1) values.set("page", page);
  return values;
}

function card(product) {
  const item = document.createElement("li");
  item.className = "card";
  const link = Object.assign(document.createElement("a"), {
    href: "/products/" + product.slug,
    textContent: product.name,
  });
  const heading = document.createElement("h3");
  heading.append(link);
  item.append(heading);
  const stock = product.stock ? product.stock + " in stock" : "Out of stock";
  const lines = [product.category, product.reviews + " reviews", stock];
  for (const text of lines) {
    item.append(Object.assign(document.createElement("p"), { textContent: text }));
  }
  const price = { className: "price", textContent: "€" + product.price.toFixed(2) };
  item.append(Object.assign(document.createElement("p"), price));
  return item;
}

async function show() {
  const turn = ++asked;
  const values = query();
  history.replaceState(null, "", values.size ? "/catalogue?" + values : "/catalogue");
  const reply = await fetch("/api/products?" + values);
  const found = await reply.json();
  if (turn !== asked) return; // An older answer that was overtaken.
  if (!reply.ok) {
    list.replaceChildren();
    pager.hidden = true;
    summary.textContent = "Please check the filters: " + found.error + ".";
    return;
  }
  list.replaceChildren(...found.items.map(card));
  summary.textContent = found.total === 1 ? "1 instrument found" : found.total + " instruments found";
  where.textContent = "Page " + found.page + " of " + found.pages;
  pager.hidden = found.pages < 2;
  previous.disabled = found.page <= 1;
  next.disabled = found.page >= found.pages;
}

function restart() {
  page = 1;
  show();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  restart();
});
form.addEventListener("change", restart);
previous.addEventListener("click", () => { page -= 1; show(); });
next.addEventListener("click", () => { page += 1; show(); });

const given = new URLSearchParams(location.search);
for (const field of form.elements) {
  if (!field.name || !given.has(field.name)) continue;
  if (field.type === "checkbox") field.checked = given.get(field.name) === field.value;
  else field.value = given.get(field.name);
}
page = Math.max(1, Number.parseInt(given.get("page"), 10) || 1);
show();
