"use strict";

// Sorts the table by the column whose heading is pressed; a second press turns the order round.
const table = document.getElementById("stations");
const headings = [...table.querySelectorAll("th[aria-sort]")];

function value(row, column) {
  const text = row.cells[column].textContent;
  return Number.isNaN(Number(text)) ? text : Number(text);
}

headings.forEach((heading, column) => {
  heading.querySelector("button").addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    const sign = down ? -1 : 1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const one = value(a, column);
      const two = value(b, column);
      return one < two ? -sign : one > two ? sign : 0;
    });
    table.tBodies[0].append(...rows);
    headings.forEach((other) => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  });
});
