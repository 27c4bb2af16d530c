// The fleet's charts: fetched for the chosen time and queue, drawn in the theme's colours, refreshed once a minute.

import "./chart_files.js";
import { checkedIn, draw } from "./charts.js";

const place = document.getElementById("use");
const queue = document.getElementById("use-queue");
const status = document.getElementById("use-status");
let figures = null;

function drawAll() {
  for (const box of document.querySelectorAll("[data-use]")) {
    const figure = figures[box.dataset.use];
    const isRows = figure.data[0]?.type === "heatmap";
    if (isRows) box.style.height = `${figure.layout.height}px`;
    const narrow = window.innerWidth < 760;
    const legend = { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" };
    const xaxis = { ...figure.layout.xaxis, tickangle: 0, nticks: narrow ? 4 : undefined, tickformat: narrow ? "%a\n%H:%M" : undefined };
    const data = figure.data.map((trace) => (isRows ? { ...trace, showscale: !narrow } : trace));
    draw(box, { data, layout: { ...figure.layout, xaxis, height: undefined, legend, ownMargin: isRows ? { l: narrow ? 90 : 150 } : { t: 36 } } });
  }
}

async function load() {
  const query = new URLSearchParams({ span: checkedIn("[data-chart-span]"), queue: queue.value });
  const answer = await fetch(`${place.dataset.url}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
  status.textContent = answer?.ok ? "" : status.dataset.failed;
  if (!answer?.ok) return;
  figures = await answer.json();
  drawAll();
}

document.addEventListener("change", ({ target }) => target.closest("#use") && load());
document.addEventListener("pitwall:theme", () => figures && drawAll());
setInterval(() => document.hidden || load(), 60000);
if (document.readyState === "complete") load();
else window.addEventListener("load", load);
