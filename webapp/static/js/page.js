// What every page has: the live connection, ages that tick, dialogs, toasts, the copy button, `/` to search.

import { refreshAges } from "./format.js";
import { start } from "./live.js";

function openDialog(button) {
  const dialog = document.getElementById(button.dataset.openDialog);
  if (!dialog) return;
  const form = dialog.querySelector("form");
  if (button.dataset.action) form.action = button.dataset.action;
  for (const part of ["title", "text", "submit"]) {
    const place = dialog.querySelector(`[data-dialog-${part}]`);
    if (place) place.textContent = button.dataset[part] ?? "";
  }
  const optional = dialog.querySelector("[data-dialog-optional]");
  if (optional) {
    optional.hidden = "required" in button.dataset;
    form.elements.reason.required = optional.hidden;
    form.elements.reason.value = "";
  }
  dialog.showModal();
  dialog.querySelector("input:not([type=hidden])")?.focus();
}

async function copy(button) {
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.querySelector("span").textContent = button.dataset.copied;
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-open-dialog], [data-close-dialog], [data-dismiss], [data-copy]");
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  if (!target) return;
  if (target.dataset.openDialog) openDialog(target);
  else if (target.dataset.copy) copy(target);
  else if ("dismiss" in target.dataset) target.closest(".toast").remove();
  else target.closest("dialog").close();
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector("[data-search-focus]");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// A menu or a fold that is open stays so when its part of the page is refreshed.
let opened = [];
const openWithin = (target) => [...target.querySelectorAll("details[open][id]")].map((details) => details.id);
const reopen = () => opened.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
document.addEventListener("htmx:beforeSwap", ({ target }) => (opened = openWithin(target)));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => opened.push(...openWithin(detail.target)));
document.addEventListener("htmx:afterSwap", reopen);
document.addEventListener("htmx:oobAfterSwap", reopen);

// A form is sent once; the server holds to that too.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method === "get") return;
  for (const button of event.target.querySelectorAll("button[type=submit]")) {
    setTimeout(() => (button.disabled = true));
  }
});
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("form[method=post] button[type=submit]")) button.disabled = false;
});

function fadeToasts() {
  for (const toast of document.querySelectorAll(".toast--success, .toast--info")) {
    setTimeout(() => toast.remove(), toast.matches(".toast--undo") ? 20000 : 7000);
  }
}

document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  if (detail.successful && target.matches("[data-close-when-sent]")) target.closest("dialog").close();
});

fadeToasts();

// On a phone the menu of pages is wider than the screen: the page that is open is within sight.
const here = document.querySelector(".nav [aria-current]");
if (here) {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft + here.offsetWidth - nav.clientWidth;
}

refreshAges();
setInterval(() => refreshAges(), 10000);
document.addEventListener("htmx:afterSettle", () => {
  refreshAges();
  fadeToasts();
});
start();
