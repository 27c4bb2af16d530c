// Memory and devices over wall time, on a job's page and on the comparison: fetched when the page opens, anew for the range
// that is zoomed to, and now and then while runs write. What the reader zoomed to stays.

import { draw, inSeriesColours, legendBelow, say } from "./charts.js";
import { fetchJson } from "./fetching.js";

const LIVE_PAUSE_MS = 4000; // a sample a second is told; nobody watches memory closer
const AFTER_FAULT_MS = 5000;

const place = document.querySelector("[data-over-time-url]");
const panels = [...document.querySelectorAll("[data-over-time]")];

let figures = {};
let range = null; // seconds, null for all of them
let timer = 0;
let lastBegan = 0;

function address() {
  const url = new URL(place.dataset.overTimeUrl, location.href);
  for (const name of ["from", "to"]) url.searchParams.delete(name);
  if (range) {
    const margin = (range[1] - range[0]) / 2; // beyond the edges, for who pans
    url.searchParams.set("from", range[0] - margin);
    url.searchParams.set("to", range[1] + margin);
  }
  return url;
}

async function load() {
  timer = 0;
  lastBegan = performance.now();
  const asked = range;
  const { data, fault } = await fetchJson(address());
  if (fault) return void loadIn(AFTER_FAULT_MS);
  if (asked !== range) return void loadIn(0);
  figures = data.figures;
  drawAll();
}

function loadIn(pause) {
  timer ||= setTimeout(load, pause);
}

function loadLive() {
  loadIn(Math.max(0, lastBegan + LIVE_PAUSE_MS - performance.now()));
}

function drawAll() {
  if (!window.Plotly) return;
  // All are laid out before any is drawn: a chart takes the width that its panel has then.
  for (const panel of panels) panel.hidden = !figures[panel.dataset.overTime] && !range;
  for (const panel of panels) drawOne(panel, figures[panel.dataset.overTime]);
}

function drawOne(panel, figure) {
  panel.querySelector("[data-whole-time]").hidden = !range;
  const box = panel.querySelector("[data-figure]");
  if (!figure) return void say(box, place.dataset.none);
  const { caption, alternative } = figure.layout.meta;
  panel.querySelector("[data-caption]").textContent = caption;
  box.setAttribute("aria-label", alternative);
  const { height, legend } = figure.layout.showlegend ? legendBelow(figure.data, box.clientWidth) : { height: 0 };
  box.style.height = `${figure.layout.height + height}px`;
  const isFirst = !box.classList.contains("js-plotly-plot");
  const seen = range ? { range: [...range], autorange: false } : { autorange: true };
  draw(box, { data: inSeriesColours(figure.data), layout: { ...figure.layout, legend: { ...figure.layout.legend, ...legend }, ownMargin: { t: 6, b: 44 + height }, xaxis: { ...figure.layout.xaxis, ...seen } } });
  if (isFirst) box.on("plotly_relayout", zoomed);
}

function zoomed(event) {
  const ends = event["xaxis.range"] ?? [event["xaxis.range[0]"], event["xaxis.range[1]"]];
  if (event["xaxis.autorange"]) range = null;
  else if (ends.every(Number.isFinite)) range = ends;
  else return;
  drawAll();
  loadIn(120);
}

if (place) {
  document.addEventListener("pitwall:drawn", load); // after the curves, which stand above
  document.addEventListener("pitwall:points", loadLive);
  document.addEventListener("pitwall:hello", loadLive);
  document.addEventListener("pitwall:job", loadLive);
  document.addEventListener("pitwall:theme", drawAll);
  for (const panel of panels) {
    panel.querySelector("[data-whole-time]").addEventListener("click", () => {
      range = null;
      loadIn(0);
    });
  }
}
