// The comparison: all that is chosen stands in the address. Curves are fetched for the range that is seen, anew on zoom
// and while a run lives; what the reader zoomed to is never reset by either.

import { draw, inSeriesColours, say, token } from "./charts.js";
import "./chart_files.js";
import { fetchJson } from "./fetching.js";
import { significant } from "./format.js";
import { smoothing } from "./smoothing.js";

const form = document.getElementById("view-form");
const state = document.getElementById("compare-state");
const boxes = [...document.querySelectorAll("[data-curves]")];
const DASHES = { dash: "5 3", dot: "1.5 2.5", dashdot: "5 2.5 1.5 2.5", longdash: "8 3", longdashdot: "8 2.5 1.5 2.5" };
const LEAST_PAUSE_MS = 1000;
const AFTER_FAULT_MS = 3000;

const hidden = new Set(); // lines that the reader switched off, each by its first job
const picked = new Set(); // selects of the scatter that the reader changed
let figures = [];
let range = null; // of the horizontal axis in its own units, null for all of it
let heights = boxes.map(() => null);

// ------------------------------------------------------------ the address

function choice(name) {
  const element = form.elements[name];
  if (element?.type === "checkbox") return element.checked ? element.value : "";
  return element?.value ?? "";
}

function chosen() {
  return {
    x: choice("x") === "step" ? "" : choice("x"),
    xlog: choice("xlog"),
    ylog: choice("ylog"),
    ...smoothing(),
    across: scatterOf("across"),
    up: scatterOf("up"),
    from: range ? short(range[0]) : "",
    to: range ? short(range[1]) : "",
    y: heights.map((ends, place) => ends && [nameOf(boxes[place]), ...ends.map(short)].join(":")).filter(Boolean).join(","),
    off: [...hidden].join(","),
  };
}

// Only what was chosen: what the selects begin with changes with what is measured.
function scatterOf(name) {
  return picked.has(name) ? choice(name) : (new URLSearchParams(location.search).get(name) ?? "");
}

function short(value) {
  return Number(value.toPrecision(15)); // all that a number holds, without its noise
}

function nameOf(box) {
  return box.closest("[data-series]").dataset.series;
}

function withState(address) {
  const url = new URL(address, location.href);
  for (const [name, value] of Object.entries(chosen())) {
    if (value === "" || value === undefined) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return legible(url);
}

function legible(url) {
  url.search = url.search.replaceAll("%2C", ",").replaceAll("%3A", ":");
  return url;
}

function remember() {
  history.replaceState(null, "", withState(location.href));
  document.getElementById("reset-zoom").hidden = !range && heights.every((height) => !height);
}

// ------------------------------------------------------------- fetching

// Scripts that stand behind this one, the drawing library among them, have run.
const scriptsRan = new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));

let fetching = false;
let again = false;
let lastTook = 0;
let timer = 0;

// A half more on either side, so that the lines reach beyond the edges while the reader pans.
function seen() {
  if (!range) return null;
  const isLog = choice("xlog") && range[0] > 0;
  const [low, high] = isLog ? range.map(Math.log10) : range;
  const margin = (high - low) / 2;
  return [low - margin, high + margin].map((value) => (isLog ? 10 ** value : value));
}

async function load() {
  if (fetching) return void (again = true);
  fetching = true;
  const url = withState(location.href);
  url.pathname = state.dataset.curvesUrl;
  const wanted = seen();
  if (wanted) wanted.forEach((value, i) => url.searchParams.set(i ? "to" : "from", value));
  const began = performance.now();
  const isFirst = !figures.length;
  const { data, fault } = await fetchJson(url);
  await scriptsRan; // the points come while the drawing library is still being read
  if (data) show(data);
  else tell(state.dataset[fault]);
  if (!isFirst) lastTook = performance.now() - began; // the first one waited for the drawing library
  fetching = false;
  if (fault) loadSoon(AFTER_FAULT_MS);
  else if (again) loadSoon(0);
  again = false;
}

function loadSoon(pause) {
  clearTimeout(timer);
  timer = setTimeout(load, pause);
}

// While runs write, no more often than the fetching itself can bear.
let liveTimer = 0;
function loadLive() {
  liveTimer ||= setTimeout(() => {
    liveTimer = 0;
    load();
  }, Math.max(LEAST_PAUSE_MS, 3 * lastTook));
}

function show(data) {
  figures = data.figures;
  document.getElementById("compare-runs").dataset.liveTopics = data.open.map((id) => `job:${id}`).join(",");
  tell("");
  showRemarks(data.remarks);
  boxes.forEach((box, place) => {
    const panel = box.closest(".plot");
    const notes = data.notes[place].map((text) => Object.assign(document.createElement("p"), { className: "panel__note", textContent: text }));
    panel.querySelector("[data-notes]").replaceChildren(...notes);
    panel.querySelector("[data-caption]").textContent = figures[place].layout.meta.caption;
    box.setAttribute("aria-label", figures[place].layout.meta.alternative);
  });
  drawCurves();
}

function tell(text) {
  let note = document.getElementById("compare-away");
  if (!note && text) {
    note = Object.assign(document.createElement("div"), { id: "compare-away", className: "note note--warn" });
    document.getElementById("compare-remarks").append(note);
  }
  if (note) {
    note.textContent = text;
    note.hidden = !text;
  }
}

function showRemarks(remarks) {
  const place = document.getElementById("compare-remarks");
  const known = new Set([...place.querySelectorAll(".note")].map((note) => note.textContent.trim()));
  for (const text of remarks) {
    if (!known.has(text)) place.append(Object.assign(document.createElement("div"), { className: "note note--warn", textContent: text }));
  }
}

// -------------------------------------------------------------- drawing

function asAxis(values, isLog, isDate) {
  if (!values || (isLog && values[0] <= 0)) return {};
  if (isDate) return { range: values.map((value) => new Date(value).toISOString().replace("Z", "")), autorange: false };
  return { range: isLog ? values.map((value) => Math.log10(value)) : values, autorange: false };
}

function drawCurves() {
  if (window.Plotly) boxes.forEach((box, place) => drawOne(box, figures[place], place));
}

function drawOne(box, figure, place) {
  if (figure.layout.meta.empty) {
    say(box, figure.layout.meta.empty);
    return void showKey(box, figure);
  }
  const isDate = figure.layout.xaxis.type === "date";
  const isLog = { x: figure.layout.xaxis.type === "log", y: figure.layout.yaxis.type === "log" };
  const layout = {
    ...figure.layout,
    uirevision: [choice("x"), isLog.x, isLog.y].join(),
    ownMargin: { t: 12, r: 12 },
    xaxis: { ...figure.layout.xaxis, ...asAxis(range, isLog.x, isDate), ...(figure.layout.hovermode === "x" && { ...SPIKE, spikecolor: token("ink-3") }) },
    yaxis: { ...figure.layout.yaxis, ...asAxis(heights[place], isLog.y, false) },
  };
  const data = inSeriesColours(figure.data).map((trace) => ({ ...trace, visible: !hidden.has(keyOf(trace)) }));
  const isFirst = !box.classList.contains("js-plotly-plot");
  draw(box, { data, layout });
  if (isFirst) listen(box, place);
  showKey(box, figure);
}

const SPIKE = { showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "dot" };

function listen(box, place) {
  box.on("plotly_relayout", (event) => zoomed(event, place));
  box.on("plotly_hover", ({ xvals, points }) => readAt(box, xvals?.[0] ?? points[0].x));
  box.on("plotly_unhover", () => showEnds(box));
}

function zoomed(event, place) {
  const names = Object.keys(event);
  const isLog = { x: Boolean(choice("xlog")) && choice("x") !== "time", y: Boolean(choice("ylog")) };
  if (names.some((name) => name.startsWith("xaxis."))) range = event["xaxis.autorange"] ? null : inUnits(event, "xaxis", isLog.x);
  if (names.some((name) => name.startsWith("yaxis."))) heights[place] = event["yaxis.autorange"] ? null : inUnits(event, "yaxis", isLog.y);
  if (!names.some((name) => /^[xy]axis\./.test(name))) return;
  remember();
  if (boxes.length > 1) drawCurves();
  loadSoon(120);
}

// What of the range is seen after a key, as parts of it from its left end.
const KEYS = { "+": [0.25, 0.75], "=": [0.25, 0.75], "-": [-0.5, 1.5], ArrowLeft: [-0.25, 0.75], ArrowRight: [0.25, 1.25] };

function keyed(event, box) {
  if (event.ctrlKey || event.metaKey || event.altKey || !box.classList.contains("js-plotly-plot")) return;
  const parts = KEYS[event.key];
  if (event.key === "0") showWhole();
  if (!parts) return;
  event.preventDefault();
  const { type, range: ends } = box.layout.xaxis;
  const isDate = type === "date";
  const [low, high] = isDate ? ends.map(plain) : ends;
  const seen = parts.map((part) => low + part * (high - low));
  window.Plotly.relayout(box, { "xaxis.range": isDate ? asAxis(seen, false, true).range : seen });
}

function showWhole() {
  range = null;
  heights = boxes.map(() => null);
  remember();
  load();
}

function inUnits(event, axis, isLog) {
  const ends = event[`${axis}.range`] ?? [event[`${axis}.range[0]`], event[`${axis}.range[1]`]];
  return ends.map((end) => {
    if (typeof end === "string" && !/^-?[\d.]+(e[+-]?\d+)?$/i.test(end)) return Date.parse(`${end.replace(" ", "T")}Z`);
    return isLog ? 10 ** Number(end) : Number(end);
  });
}

// ------------------------------------------------- the legend and its values

function keyOf(trace) {
  return String(trace.meta?.jobs?.[0] ?? trace.name);
}

function linesOf(figure) {
  return figure.data.filter((trace) => trace.meta?.part === "line");
}

function showKey(box, figure) {
  const key = box.closest(".plot").querySelector("[data-key]");
  const lines = linesOf(figure);
  const names = lines.map((line) => line.name).join("\n");
  if (key.dataset.names !== names) {
    key.dataset.names = names;
    key.replaceChildren(...lines.map(keyEntry));
  }
  showEnds(box);
}

function keyEntry(line) {
  const entry = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", title: line.name });
  button.dataset.line = keyOf(line);
  button.setAttribute("aria-pressed", String(!hidden.has(keyOf(line))));
  const name = Object.assign(document.createElement("span"), { className: "key__name", textContent: line.name });
  const value = Object.assign(document.createElement("span"), { className: "key__value" });
  button.append(swatch(line), name, value);
  entry.append(button);
  return entry;
}

function swatch(line) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 18 4");
  svg.setAttribute("class", `swatch-line stroke--${line.meta.place % 6}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M0 2h18");
  path.setAttribute("stroke-dasharray", DASHES[line.line.dash] ?? "");
  svg.append(path);
  return svg;
}

function showValues(box, values) {
  const key = box.closest(".plot").querySelector("[data-key]");
  [...key.querySelectorAll(".key__value")].forEach((place, i) => {
    place.textContent = Number.isFinite(values[i]) ? significant(values[i], 5) : "–";
  });
}

function showEnds(box) {
  const lines = linesOf(figures[boxes.indexOf(box)]);
  showValues(box, lines.map((line) => line.y.findLast((value) => value !== null) ?? NaN));
}

// The value of every line where the pointer is: that of its point nearest to there. A line has none far beyond its ends.
function readAt(box, x) {
  const at = plain(x);
  const lines = linesOf(figures[boxes.indexOf(box)]);
  const ends = lines.map((line) => endsOf(line.x));
  const reach = (Math.max(...ends.map(([, high]) => high)) - Math.min(...ends.map(([low]) => low))) / 50;
  const has = ([low, high]) => at >= low - reach && at <= high + reach;
  showValues(box, lines.map((line, i) => (has(ends[i]) ? (line.y[nearest(line.x, at)] ?? NaN) : NaN)));
}

function endsOf(x) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of x) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

function plain(x) {
  return typeof x === "string" ? Date.parse(`${x.replace(" ", "T")}Z`) : x;
}

// Over another series, such as a loss, a line goes to and fro: so every point is looked at.
function nearest(x, at) {
  let found = -1;
  let least = Infinity;
  for (let i = 0; i < x.length; i += 1) {
    const distance = x[i] === null ? Infinity : Math.abs(x[i] - at);
    if (distance < least) [found, least] = [i, distance];
  }
  return found;
}

// -------------------------------------------------------- the other charts

let charts = {};

async function loadCharts() {
  const place = document.getElementById("compare-charts");
  const url = withState(location.href);
  url.pathname = place.dataset.url;
  const { data, fault } = await fetchJson(url);
  if (fault) return void setTimeout(loadCharts, AFTER_FAULT_MS);
  charts = data.figures;
  for (const name of ["across", "up"]) addChoices(form.elements[name], data.metrics, url.searchParams.get(name));
  drawCharts();
}

// What was measured since the page was opened; what stands there already, and what the reader chose, stays.
function addChoices(select, metrics, chosen) {
  const known = new Set([...select.options].map((option) => option.value));
  for (const [value, label] of metrics) if (!known.has(value)) select.append(new Option(label, value));
  const wanted = chosen || select.dataset.begins;
  if (!known.size && metrics.some(([value]) => value === wanted)) select.value = wanted;
}

function drawCharts() {
  for (const panel of document.querySelectorAll("[data-chart-panel]")) {
    const figure = charts[panel.dataset.chartPanel];
    panel.hidden = !figure;
    if (!figure) continue;
    const box = panel.querySelector("[data-figure]");
    const { caption, alternative, least_width_px: leastWidth } = figure.layout.meta;
    panel.querySelector("[data-caption]").textContent = caption;
    box.setAttribute("aria-label", alternative);
    box.style.minWidth = leastWidth ? `${leastWidth}px` : "";
    box.style.height = figure.layout.height ? `${figure.layout.height}px` : "";
    const ownMargin = { t: figure.layout.showlegend || panel.dataset.chartPanel === "parallel" ? 64 : 14 };
    draw(box, { data: inSeriesColours(figure.data), layout: { ...figure.layout, ownMargin } });
  }
}

// --------------------------------------------------------------- beginning

function changed(target) {
  if (target.matches("[data-reload]")) return void reload();
  if (target.matches("[data-charts]")) {
    picked.add(target.name);
    remember();
    return void loadCharts();
  }
  if (!target.matches("[data-view]")) return;
  if (target.name === "x" || target.name === "xlog") range = null;
  if (target.name === "ylog") heights = boxes.map(() => null);
  remember();
  load();
}

// What changes columns or charts comes as a new page, with everything else as it is.
function reload() {
  const url = withState(location.href);
  for (const name of ["group", "legend", "band", "other"]) {
    const value = choice(name);
    if (value) url.searchParams.set(name, value);
    else if (form.elements[name]) url.searchParams.delete(name);
  }
  const series = [...document.querySelectorAll("select[name=series]")].map((select) => select.value).filter(Boolean);
  url.searchParams.set("series", [...new Set(series)].join(","));
  if (url.searchParams.get("group")) url.searchParams.delete("legend");
  else url.searchParams.delete("band");
  location.assign(legible(url));
}

// The zoom and the lines that are off, as the address tells them.
function recall() {
  const query = new URLSearchParams(location.search);
  if (query.has("from") && query.has("to")) range = [Number(query.get("from")), Number(query.get("to"))];
  if (range && !range.every(Number.isFinite)) range = null;
  const seen = new Map((query.get("y") ?? "").split(",").map((part) => [part.split(":").slice(0, -2).join(":"), part.split(":").slice(-2).map(Number)]));
  heights = boxes.map((box) => seen.get(nameOf(box)) ?? null).map((ends) => (ends?.every(Number.isFinite) && ends[0] < ends[1] ? ends : null));
  for (const key of (query.get("off") ?? "").split(",")) if (key) hidden.add(key);
}

function begin() {
  recall();
  document.getElementById("reset-zoom").hidden = !range && heights.every((ends) => !ends);
  load().then(() => setTimeout(loadRest)); // what lies below waits until the curves are painted
}

// A run has begun or ended.
function refreshed() {
  loadCharts();
  loadLive();
  window.htmx.trigger("#compare-best", "live-refresh");
}

function loadRest() {
  loadCharts();
  document.dispatchEvent(new CustomEvent("pitwall:drawn"));
}

if (form) {
  begin();
  document.addEventListener("change", ({ target }) => changed(target));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    reload();
  });
  document.getElementById("reset-zoom").addEventListener("click", showWhole);
  for (const box of boxes) box.addEventListener("keydown", (event) => event.target === box && keyed(event, box));
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[data-keeps-view]");
    if (link) link.href = withState(link.href);
    const button = target.closest("[data-line]");
    if (button) toggle(button);
  });
  document.addEventListener("pitwall:points", loadLive);
  window.addEventListener("online", () => loadSoon(0));
  document.addEventListener("pitwall:gone", loadLive);
  // Now and then even without news: a job that has ended and is deleted sends none.
  setInterval(() => document.hidden || !document.getElementById("compare-runs").dataset.liveTopics || loadLive(), 60000);
  document.addEventListener("pitwall:hello", () => figures.length && loadLive());
  document.addEventListener("pitwall:theme", () => {
    if (figures.length) drawCurves();
    drawCharts();
  });
  document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "compare-tables" && refreshed());
}

// A table that could not be fetched is asked for again.
for (const name of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(name, ({ detail }) => {
    const part = detail.elt;
    if (part.matches("#compare-tables, #compare-best")) setTimeout(() => window.htmx.trigger(part, "live-refresh"), AFTER_FAULT_MS);
  });
}

function toggle(button) {
  const name = button.dataset.line;
  if (hidden.has(name)) hidden.delete(name);
  else hidden.add(name);
  for (const other of document.querySelectorAll("[data-line]")) other.setAttribute("aria-pressed", String(!hidden.has(other.dataset.line)));
  remember();
  drawCurves();
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("#add-job") && target.value) target.form.requestSubmit();
});
document.getElementById("add-run")?.addEventListener("submit", (event) => {
  if (!form) return;
  event.preventDefault();
  const url = withState(location.href);
  const added = document.getElementById("add-job").value;
  const jobs = [...form.querySelectorAll("input[name=jobs]")].map((input) => input.value);
  url.searchParams.set("jobs", [...jobs, added].filter(Boolean).join(","));
  location.assign(legible(url));
});

// A view keeps what is seen now, not what the page was opened with.
document.addEventListener("submit", ({ target }) => {
  const query = target.querySelector("[data-view-query]");
  if (query && form) query.value = withState(location.href).search;
}, true);
