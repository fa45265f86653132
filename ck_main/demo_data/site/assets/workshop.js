"use strict";

// The list comes from the workshop's own slow computer, well after the page.
const state = document.getElementById("state");
const table = document.getElementById("tickets");

async function load() {
  const board = await (await fetch("/api/workshop")).json();
  for (const entry of board.tickets) {
    const row = table.tBodies[0].insertRow();
    for (const key of ["ticket", "customer", "instrument", "status"]) {
      row.insertCell().textContent = entry[key];
    }
  }
  state.textContent = "As of " + board.as_of + ": " + board.tickets.length + " tickets.";
  table.hidden = false;
}

window.addEventListener("load", () => setTimeout(load, 1500));
