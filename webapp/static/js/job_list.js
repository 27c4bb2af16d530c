// The list: what is ticked can be compared or acted on; columns are chosen and ordered; a refresh moves nothing away.

import "./act.js";
import { onChange } from "./selection.js";
import { drawAll } from "./spark.js";

const go = document.getElementById("compare-go");
const label = go.querySelector("[data-text]");

onChange((ids) => {
  label.textContent = label.dataset.text.replace("{n}", ids.length);
  go.href = `${go.dataset.url}?jobs=${ids.join(",")}`;
});

// Empty parts stay out of the address, and the columns are one part of it.
for (const form of document.querySelectorAll("#filters, #columns-form")) {
  form.addEventListener("formdata", ({ formData }) => {
    const columns = formData.getAll("columns");
    if (columns.length > 1) formData.set("columns", columns.join(","));
    for (const [key, value] of [...formData]) if (!value) formData.delete(key);
  });
}

// ----------------------------------------------------------------- columns

const list = document.getElementById("columns-list");

function arrow(item, name, back) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button--small";
  button.textContent = back ? "↓" : "↑";
  button.setAttribute("aria-label", (back ? list.dataset.down : list.dataset.up).replace("{name}", name));
  button.addEventListener("click", () => {
    const other = back ? item.nextElementSibling : item.previousElementSibling;
    if (!other) return;
    if (back) other.after(item);
    else other.before(item);
    button.focus();
  });
  return button;
}

for (const item of list.children) {
  const name = item.querySelector("label").firstElementChild.nextSibling.textContent.trim();
  const arrows = document.createElement("span");
  arrows.className = "columns-list__arrows";
  arrows.append(arrow(item, name, false), arrow(item, name, true));
  item.append(arrows);
}

list.addEventListener("change", ({ target }) => {
  if (!target.checked) return;
  const item = target.closest("li");
  const chosen = [...list.children].filter((other) => other !== item && other.querySelector(":checked"));
  chosen.at(-1)?.after(item); // a column that is chosen joins the end of those that are
  item.scrollIntoView({ block: "nearest" });
  target.focus();
});

document.getElementById("columns-find").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase();
  for (const item of list.children) item.hidden = !item.dataset.name.toLowerCase().includes(words);
});
document.getElementById("columns-find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.preventDefault();
});

// ----------------------------------------------------------------- refresh

// The first row in sight stays where it is, however many arrive above it.
let anchor = null;

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id !== "job-rows") return;
  const row = [...document.querySelectorAll("#job-rows tr[data-job]")].find((each) => each.getBoundingClientRect().top >= 60);
  anchor = row && window.scrollY > 0 ? { job: row.dataset.job, top: row.getBoundingClientRect().top } : null;
});
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  const row = anchor && detail.target.id === "job-rows" && document.querySelector(`#job-rows tr[data-job="${anchor.job}"]`);
  if (row) window.scrollBy({ top: row.getBoundingClientRect().top - anchor.top, behavior: "instant" });
  anchor = null;
});

document.addEventListener("htmx:afterSettle", () => drawAll());
drawAll();
