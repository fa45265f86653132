"use strict";

// Shows the trade code after a confirmation, and arranges a call after a prompt.
const shown = document.getElementById("shown");

document.getElementById("reveal").addEventListener("click", async () => {
  if (!confirm("The trade code is for registered trade customers only. Are you one?")) {
    shown.textContent = "The code was not shown, because you pressed Cancel.";
    return;
  }
  const reply = await fetch("/api/trade-code", {
    method: "POST",
    body: new URLSearchParams({ confirmed: "yes" }),
  });
  const trade = await reply.json();
  shown.textContent = "Your trade code is " + trade.code + " (" + trade.discount_percent + " % off).";
});

document.getElementById("callback").addEventListener("click", () => {
  const name = prompt("Who shall we call back?", "");
  shown.textContent = name ? "We will call " + name + " back." : "No call was arranged.";
});

document.getElementById("notice").addEventListener("click", () => {
  alert("Trade orders placed before noon leave the same day.");
});
