"use strict";

// Tabs, and the notice about cookies, which stays away once it was answered.
const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
  }
}

tabs.forEach((tab, index) => {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const other = tabs[(index + step + tabs.length) % tabs.length];
    choose(other);
    other.focus();
  });
});

const banner = document.getElementById("cookies");
banner.hidden = document.cookie.includes("cookies-answered=");
banner.addEventListener("click", (event) => {
  if (event.target.tagName !== "BUTTON") return;
  document.cookie = "cookies-answered=" + event.target.value + "; path=/; SameSite=Lax";
  banner.hidden = true;
});

document.getElementById("collection-times").addEventListener("click", () => {
  document.getElementById("times").hidden = false;
});
