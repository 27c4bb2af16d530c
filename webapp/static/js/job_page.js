// One job's curves, live. New points are appended; Plotly's `uirevision` keeps the reader's zoom.

import "./chart_files.js";
import { checkedIn, draw, inSeriesColours, seriesColour, token } from "./charts.js";
import { fetchJson } from "./fetching.js";
import { ahead, filled, significant } from "./format.js";
import { smoothing } from "./smoothing.js";

const box = document.getElementById("job-chart");
const choice = document.getElementById("chart-series");
const AFTER_FAULT_MS = 3000;
const ASK_WAITING_MS = 10000;
const MOST_POINTS = 12000; // then the server's thinned curve is fetched anew

const NO_CURVES = { attempt: null, sequence: -1, wallBefore: 0, seams: [], numFiner: 0 };
let curves = { ...NO_CURVES, series: {}, titles: {}, notes: {} };
let isLoading = false;
let isWaiting = false;
let waiting = [];

// `wallBefore`: seconds of training that an attempt inherited, in which points that come later do not count.
function add(name, points, wallBefore) {
  const known = (curves.series[name] ??= { step: [], wall: [], y: [] });
  const newest = known.step.at(-1) ?? -1;
  points.step.forEach((step, i) => {
    if (step <= newest) return;
    known.step.push(step);
    known.wall.push(points.wall[i] + wallBefore);
    known.y.push(number(points.y[i]));
  });
}

function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null; // null breaks the line
}

// What was learnt before what was sampled, whichever was told first.
function namesInOrder() {
  const names = Object.keys(curves.series);
  const isSampled = (name) => name.startsWith("telemetry.");
  return [...names.filter((name) => !isSampled(name)), ...names.filter(isSampled)];
}

function shownSeries() {
  const chosen = choice.value || namesInOrder()[0];
  const partner = chosen?.startsWith("train_") ? chosen.replace("train_", "eval_") : "";
  return [chosen, partner].filter((name) => curves.series[name]);
}

function trace(name, place, x) {
  const points = curves.series[name];
  const isSparse = points.step.length <= 40;
  return {
    type: "scatter",
    name: curves.titles[name] ?? name,
    mode: isSparse ? "lines+markers" : "lines",
    x: points[x],
    y: points.y,
    connectgaps: false,
    line: { color: seriesColour(place), width: 1.8 },
    marker: { color: seriesColour(place), size: 5 },
    hovertemplate: "%{y:.5g}",
  };
}

function seamLines(points, x) {
  return curves.seams
    .map((seam) => points.step.findLastIndex((step) => step <= seam))
    .filter((place) => place >= 0 && place < points.step.length - 1)
    .map((place) => ({ type: "line", x0: points[x][place], x1: points[x][place], y0: 0, y1: 1, yref: "paper", line: { color: token("ink-3"), dash: "dot", width: 1 } }));
}

function render() {
  const names = shownSeries();
  if (!names.length || !window.Plotly) return;
  box.querySelector("[data-none]")?.remove();
  const x = checkedIn("[data-chart-x]") ?? "step";
  const xTitle = x === "step" ? box.dataset.stepTitle : box.dataset.wallTitle;
  const y = checkedIn("[data-chart-y]") ?? "linear";
  const isFirst = !box.classList.contains("js-plotly-plot");
  draw(box, {
    data: smoothed ? smoothedTraces() : names.map((name, place) => trace(name, place, x)),
    layout: {
      uirevision: `${choice.value}|${x}|${y}`,
      hovermode: "x unified",
      showlegend: names.length > 1,
      shapes: seamLines(curves.series[names[0]], x),
      legend: { orientation: "h", x: 1, xanchor: "right", y: 1.08 },
      xaxis: { title: { text: xTitle }, rangemode: "nonnegative" },
      yaxis: { title: { text: curves.titles[names[0]] ?? names[0] }, type: y },
    },
  });
  if (isFirst) box.on("plotly_relayout", zoomed);
  describe(names, xTitle);
}

// ------------------------------------------------------------------ zoom

// What is zoomed to is fetched as finely as it can be shown, and takes the place of the coarse points there.
const MOST_FINER = 4; // then the coarse curve is fetched anew, so that the page does not grow
let range = null; // of the horizontal axis, null for all of it
let zoomTimer = 0;

function zoomed(event) {
  const ends = event["xaxis.range"] ?? [event["xaxis.range[0]"], event["xaxis.range[1]"]];
  if (event["xaxis.autorange"]) range = null;
  else if (ends.every(Number.isFinite)) range = ends;
  else return;
  refineSoon();
}

function refineSoon() {
  clearTimeout(zoomTimer);
  if (range || smoothed) zoomTimer = setTimeout(smoothing().smooth ? smoothOver : refine, 150);
}

async function refine() {
  if (!range || curves.attempt === null) return;
  if (curves.numFiner >= MOST_FINER) return void load({ anew: true });
  const [from, to] = stepsSeen();
  const { data } = await fetchJson(`${box.dataset.url}?from=${from}&to=${to}`);
  if (data?.attempt !== curves.attempt) return;
  const isFiner = Object.entries(data.series).map(([name, points]) => curves.series[name] && insert(curves.series[name], points, from, to));
  if (!isFiner.some(Boolean)) return;
  curves.numFiner += 1;
  renderSoon();
}

// The steps that are seen, and one more on either side.
function stepsSeen() {
  const points = curves.series[shownSeries()[0]];
  const x = points[checkedIn("[data-chart-x]") ?? "step"];
  const first = Math.max(0, x.findIndex((value) => value >= range[0]) - 1);
  const after = x.findIndex((value) => value > range[1]);
  return [points.step[first], points.step.at(after)];
}

// Where they are more than what is known there; what is newer than the newest known point is told live.
function insert(known, points, from, to) {
  const newest = known.step.at(-1);
  const inside = points.step.map((_, i) => i).filter((i) => points.step[i] <= newest);
  const low = known.step.filter((step) => step < from).length;
  const high = known.step.filter((step) => step <= to).length;
  if (inside.length <= high - low) return false;
  const put = (own, values) => [...own.slice(0, low), ...inside.map((i) => values[i]), ...own.slice(high)];
  Object.assign(known, { step: put(known.step, points.step), wall: put(known.wall, points.wall), y: put(known.y, points.y.map(number)) });
  return true;
}

// ------------------------------------------------------------ smoothing

// The comparison smooths every point before any is left out; so its lines are asked for, anew on zoom and while the job runs.
const LEAST_PAUSE_MS = 1000;
let smoothed = null; // its figures of the series that are shown, null while they are drawn as recorded
let isSmoothing = false;
let lastTook = 0;
let smoothTimer = 0;

function smoothAddress() {
  const url = new URL(box.dataset.smoothUrl, location.href);
  url.searchParams.set("series", shownSeries().join(","));
  url.searchParams.set("x", checkedIn("[data-chart-x]") === "wall" ? "wall_s" : "step");
  for (const [name, value] of Object.entries(smoothing())) url.searchParams.set(name, value);
  const margin = range ? (range[1] - range[0]) / 2 : 0; // beyond the edges, for who pans
  if (range) url.searchParams.set("from", range[0] - margin);
  if (range) url.searchParams.set("to", range[1] + margin);
  return url.href;
}

async function smoothOver() {
  clearTimeout(smoothTimer);
  smoothTimer = 0;
  if (isSmoothing || !smoothing().smooth || !shownSeries().length) return;
  isSmoothing = true;
  const began = performance.now();
  const address = smoothAddress();
  const { data, fault } = await fetchJson(address);
  lastTook = performance.now() - began;
  isSmoothing = false;
  if (!smoothing().smooth) return;
  if (address !== smoothAddress()) return void smoothOver();
  if (fault) return void smoothIn(AFTER_FAULT_MS);
  smoothed = data.figures;
  renderSoon();
}

function smoothIn(pause) {
  smoothTimer ||= setTimeout(smoothOver, pause);
}

function smoothedTraces() {
  const places = smoothed.flatMap((figure, place) =>
    figure.data.map((line) => ({ ...line, name: figure.layout.yaxis.title.text, meta: { ...line.meta, place } })),
  );
  return inSeriesColours(places);
}

function smoothingChanged() {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(smoothing())) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  history.replaceState(null, "", url);
  if (smoothing().smooth) return void smoothOver();
  smoothed = null;
  render();
  refineSoon();
}

// What is drawn, with its units, and where each line stands now.
function describe(names, xTitle) {
  const titles = names.map((name) => curves.titles[name] ?? name);
  const remarks = smoothed ? smoothed.flatMap((figure) => figure.layout.meta.remarks) : names.map((name) => curves.notes[name] ?? "");
  const sentences = [filled(box.dataset.caption, { series: titles.join(", "), x: xTitle }), ...new Set(remarks)];
  document.getElementById("job-caption").textContent = sentences.join(" ").trim();
  const ends = names.map((name, place) => {
    const last = curves.series[name].y.findLast((value) => value !== null);
    return last === undefined ? titles[place] : filled(box.dataset.end, { name: titles[place], value: significant(last, 4) });
  });
  box.setAttribute("aria-label", ends.join("; "));
}

let frame = 0;
function renderSoon() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    render();
    showTiles();
  });
}

function fillChoice() {
  const names = namesInOrder().filter((name) => !(name.startsWith("eval_") && curves.series[name.replace("eval_", "train_")]));
  if ([...choice.options].map((option) => option.value).join() === names.join()) return;
  const before = choice.value;
  choice.replaceChildren(...names.map((name) => new Option(curves.titles[name] ?? name, name)));
  if (names.includes(before)) choice.value = before;
  choice.hidden = names.length < 2;
  document.getElementById("chart-download").hidden = names.length < 1;
}

// While it runs, tiles show what the curve knows already; the engine's own figures replace them at the end.
function showTiles() {
  const points = curves.series.train_loss;
  if (!points || points.step.length < 2) return;
  const last = points.step.length - 1;
  const first = Math.max(0, last - 50);
  const stepTime = ((points.wall[last] - points.wall[first]) / (points.step[last] - points.step[first])) * 1000;
  setTile("final_train_loss", points.y[last]);
  setTile("steady_step_time_ms", stepTime, "ms");
  setTile("samples_per_s", (1000 * Number(document.querySelector("[data-live-tiles]")?.dataset.batch)) / stepTime, "samples/s");
  const left = document.getElementById("time-left");
  const steps = Number(left?.dataset.total) - points.step[last];
  if (steps > 0 && stepTime > 0) left.textContent = left.dataset.text.replace("{when}", ahead((steps * stepTime) / 1000));
}

function setTile(name, value, unit = "") {
  const tile = document.querySelector(`[data-live-tiles] [data-tile="${name}"]`);
  if (!tile || !Number.isFinite(value)) return;
  tile.closest(".tile").classList.remove("tile--none");
  tile.replaceChildren(significant(value, unit ? 3 : 4));
  if (unit) {
    const small = document.createElement("span");
    small.className = "unit";
    small.textContent = ` ${unit}`;
    tile.append(small);
  }
}

async function load({ anew = false } = {}) {
  if (isLoading) return void (isWaiting = true);
  isLoading = true;
  const knowsNone = curves.attempt === null || curves.sequence < 0; // then the first flush is missing, too
  const query = anew || knowsNone ? "" : `?attempt=${curves.attempt}&after=${curves.sequence}`;
  const { data, fault } = await fetchJson(box.dataset.url + query);
  sayAway(fault);
  if (data) {
    if (data.attempt !== curves.attempt) smoothed = null;
    if (anew || data.attempt !== curves.attempt) curves = { ...NO_CURVES, attempt: data.attempt, series: {}, titles: {}, notes: {} };
    take(data);
    waiting.forEach((points) => points.attempt === curves.attempt && take(points));
  }
  waiting = [];
  isLoading = false;
  if (anew) refineSoon();
  if (isWaiting) {
    isWaiting = false;
    load();
  }
}

// What could not be fetched is asked for again, so that no gap stays; the points that were told meanwhile come with it.
function sayAway(fault) {
  const note = document.getElementById("job-away");
  note.hidden = !fault;
  note.textContent = fault ? box.dataset[fault] : "";
  if (fault) setTimeout(() => load(), AFTER_FAULT_MS);
}

function take(data) {
  Object.assign(curves.titles, data.titles);
  const isWhole = "wall_before" in data;
  if (isWhole) Object.assign(curves, { wallBefore: data.wall_before, seams: data.seams, notes: data.notes });
  for (const [name, points] of Object.entries(data.series)) add(name, points, isWhole ? 0 : curves.wallBefore);
  curves.sequence = Math.max(curves.sequence, data.sequence);
  fillChoice();
  renderSoon();
  if (smoothing().smooth) smoothIn(smoothed ? Math.max(LEAST_PAUSE_MS, 3 * lastTook) : 0);
}

document.addEventListener("pitwall:points", ({ detail }) => {
  if (String(detail.job) !== box.dataset.job) return;
  if (isLoading) return void waiting.push(detail);
  if (detail.attempt !== curves.attempt || Object.keys(detail.series).some((name) => !curves.titles[name])) return void load({ anew: true });
  if (detail.sequence <= curves.sequence) return;
  if (detail.first > curves.sequence + 1) return void load();
  take(detail);
  if (Object.values(curves.series).some((points) => points.step.length > MOST_POINTS)) load({ anew: true });
});
document.addEventListener("pitwall:hello", () => load());
document.addEventListener("pitwall:gone", () => load());
box.addEventListener("recolour", render);
choice.addEventListener("change", showWhole);
document.addEventListener("change", ({ target }) => {
  if (target.closest("[data-chart-x], [data-chart-y]")) showWhole();
  if (target.matches("#view-smooth, #view-amount")) smoothingChanged();
});

// Another series or another axis is seen whole first.
function showWhole() {
  range = null;
  smoothed = null;
  render();
  smoothOver();
}

document.addEventListener("htmx:afterSettle", showTiles);

// While a job waits, its place in the line and what it waits for change without a message.
setInterval(() => {
  const { state } = document.getElementById("job-live").dataset;
  if (state === "queued" && !document.hidden) window.htmx.trigger("#job-top-loader", "live-refresh");
}, ASK_WAITING_MS);

if (document.readyState === "complete") load();
else window.addEventListener("load", () => load());
