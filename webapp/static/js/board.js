// A board: the memory slider dims what does not fit while it is dragged, and the form asks anew when it is let go.

import { draw, inSeriesColours } from "./charts.js";

const form = document.getElementById("board-form");
const slider = document.getElementById("budget-slider");
const budget = document.getElementById("budget");
const GIB = 2 ** 30;

function drawAll() {
  for (const box of document.querySelectorAll("[data-board-chart]")) {
    const figure = JSON.parse(document.getElementById(box.dataset.boardChart).textContent);
    const show = () => draw(box, { ...figure, data: inSeriesColours(figure.data) });
    if (!box.pitwallFigure) box.addEventListener("recolour", show);
    show();
  }
}

function dim(limit) {
  for (const row of document.querySelectorAll("[data-peak]")) {
    row.classList.toggle("row--too-big", limit !== null && Number(row.dataset.peak) > limit * GIB);
  }
}

slider.addEventListener("input", () => {
  const isEnd = slider.value === slider.max;
  budget.value = isEnd ? "" : slider.value;
  dim(isEnd ? null : Number(slider.value));
});

budget.addEventListener("input", () => {
  slider.value = budget.value || slider.max;
});

form.addEventListener("click", ({ target }) => {
  const size = target.closest("[data-budget]")?.dataset.budget;
  if (size === undefined) return;
  budget.value = size;
  slider.value = size || slider.max;
  budget.dispatchEvent(new Event("change", { bubbles: true }));
});

// What is empty has no place in an address that people share.
form.addEventListener("htmx:configRequest", ({ detail }) => {
  for (const [name, value] of Object.entries(detail.parameters)) if (value === "") delete detail.parameters[name];
});

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-go]")) target.form.submit();
});

document.addEventListener("htmx:afterSettle", drawAll);
drawAll();
