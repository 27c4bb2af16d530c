// The list: what is ticked can be compared or acted on; filters apply when they change.

import "./act.js";
import { onChange } from "./selection.js";
import { drawAll } from "./spark.js";

const go = document.getElementById("compare-go");
const label = go.querySelector("[data-text]");

onChange((ids) => {
  label.textContent = label.dataset.text.replace("{n}", ids.length);
  if (ids.length >= 2) {
    go.removeAttribute("aria-disabled");
    go.href = `${go.dataset.url}?jobs=${ids.join(",")}`;
  } else {
    go.setAttribute("aria-disabled", "true");
    go.removeAttribute("href");
  }
});

document.addEventListener("change", ({ target }) => {
  if (target.closest("#filters") && target.matches("select")) target.form.requestSubmit();
});

// Empty filters stay out of the address.
document.getElementById("filters").addEventListener("formdata", ({ formData }) => {
  for (const [key, value] of [...formData]) if (!value) formData.delete(key);
});

document.addEventListener("htmx:afterSettle", () => drawAll());
drawAll();
