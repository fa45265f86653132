"use strict";

// Checks what can be checked here; the server checks everything again, and the stock.
const form = document.getElementById("order");
const box = document.getElementById("errors");

function faults(values) {
  const found = [];
  const quantity = values.get("quantity").trim();
  if (!values.get("product")) found.push("Choose an instrument.");
  if (!/^[0-9]+$/.test(quantity) || quantity < 1 || quantity > 20) {
    found.push("Quantity must be a number from 1 to 20.");
  }
  if (!values.get("name").trim()) found.push("Enter your name.");
  if (!/^\s*[^@\s]+@[^@\s]+\.[^@\s.]{2,}\s*$/.test(values.get("email"))) {
    found.push("Enter an email address such as name@example.org.");
  }
  if (!values.get("delivery")) found.push("Choose home delivery or collection.");
  if (values.get("delivery") === "home" && !/^\s*[0-9]{5}\s*$/.test(values.get("postcode"))) {
    found.push("Enter a postcode of five digits for home delivery.");
  }
  if (!values.get("terms")) found.push("Accept the terms of sale.");
  return found;
}

form.addEventListener("submit", (event) => {
  const found = faults(new FormData(form));
  if (!found.length) return;
  event.preventDefault();
  const items = found.map((text) => Object.assign(document.createElement("li"), { textContent: text }));
  const list = document.createElement("ul");
  list.append(...items);
  const lead = Object.assign(document.createElement("p"), { textContent: "Please correct the following:" });
  box.replaceChildren(lead, list);
  box.hidden = false;
  box.scrollIntoView({ block: "center" });
});
