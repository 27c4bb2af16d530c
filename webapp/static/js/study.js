// A study's charts, drawn anew with every refresh of its living part.

import { draw } from "./charts.js";

function drawAll() {
  const holder = document.getElementById("study-figures");
  if (!holder) return;
  const figures = JSON.parse(holder.textContent);
  for (const box of document.querySelectorAll("#study [data-figure]")) {
    if (box.pitwallFigure) continue;
    const figure = figures[box.dataset.figure];
    box.setAttribute("aria-label", figure.layout.meta.alternative);
    box.style.height = `${figure.layout.height}px`;
    const show = () => draw(box, figure);
    box.addEventListener("recolour", show);
    show();
  }
}

document.addEventListener("htmx:afterSettle", drawAll);
drawAll();
