// A job's log: its end, which grows, or the place in the whole of it where something was found.

import { fetchJson } from "./fetching.js";
import { filled, significant } from "./format.js";

const log = document.getElementById("job-log");
const follow = document.getElementById("log-follow");
const search = document.getElementById("log-search");
const found = document.getElementById("log-found");
const steps = document.getElementById("log-steps");
const READ_EVERY_MS = 1500;
const TYPING_MS = 200;

// ------------------------------------------------------------- its end

let read = { attempt: "", offset: 0 };
let isReading = false;
let end = ""; // as far as it has been read, whether it is seen or not

async function readOn() {
  if (isReading || document.hidden) return;
  isReading = true;
  const query = read.attempt ? `?attempt=${read.attempt}&offset=${read.offset}` : "";
  const { data: part } = await fetchJson(log.dataset.url + query);
  if (part) take(part);
  isReading = false;
}

function take(part) {
  const isNew = part.attempt !== read.attempt || part.is_cut;
  if (isNew) end = "";
  end += part.text;
  read = { attempt: part.attempt ?? "", offset: part.offset };
  if (words()) {
    if (part.text.toLowerCase().includes(words())) find();
    return;
  }
  document.getElementById("log-cut").hidden = !part.is_cut;
  if (isNew) log.textContent = end;
  else if (part.text) log.append(part.text);
  if (part.text) keepUp();
}

function keepUp() {
  if (follow.checked) log.scrollTop = log.scrollHeight;
}

// --------------------------------------------------------------- search

let hits = { attempt: null, hits: [], num_found: 0 };
let place = -1; // among the hits that were told
let asked = 0; // what answers an earlier question is dropped
let timer = 0;

function words() {
  return search.value.trim().toLowerCase();
}

// Begins with the last one, as the log is seen from its end; what is found anew keeps the place.
async function find() {
  const question = ++asked;
  const { data } = await fetchJson(`${search.dataset.url}?q=${encodeURIComponent(words())}`);
  if (!data || question !== asked) return;
  const [, seen] = hits.attempt === data.attempt && hits.hits[place] ? hits.hits[place] : [];
  const known = data.hits.findIndex(([, offset]) => offset === seen);
  hits = data;
  place = known < 0 ? data.hits.length - 1 : known;
  tell();
  if (known < 0) await show();
}

async function show() {
  const hit = hits.hits[place];
  if (!hit) return void log.replaceChildren();
  const { data } = await fetchJson(`${log.dataset.url}?attempt=${hits.attempt}&around=${hit[1]}`);
  if (data?.line === undefined || hits.hits[place]?.[1] !== hit[1]) return;
  const line = Object.assign(document.createElement("mark"), { textContent: data.line });
  log.replaceChildren(data.before, line, data.after);
  log.scrollTop += line.getBoundingClientRect().top - log.getBoundingClientRect().top - log.clientHeight / 3;
}

function tell() {
  const texts = search.dataset;
  const [line] = hits.hits[place] ?? [];
  const n = hits.num_found - hits.hits.length + 1 + place; // of many, only the last ones are told
  const parts = [line ? filled(texts.place, { n: significant(n), m: significant(hits.num_found), line: significant(line) }) : texts.none];
  if (!hits.is_whole) parts.push(texts.stopped);
  if (hits.has_gap) parts.push(texts.gap);
  found.textContent = parts.join(" · ");
  steps.hidden = hits.hits.length < 2;
}

function step(by) {
  if (!hits.hits.length) return;
  place = (place + by + hits.hits.length) % hits.hits.length;
  tell();
  show();
}

function back() {
  asked += 1;
  hits = { attempt: null, hits: [], num_found: 0 };
  place = -1;
  found.textContent = "";
  steps.hidden = true;
  log.textContent = end;
  log.scrollTop = log.scrollHeight;
}

search.addEventListener("input", () => {
  clearTimeout(timer);
  asked += 1;
  if (words()) timer = setTimeout(find, TYPING_MS);
  else back();
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    search.value = "";
    back();
  }
  if (event.key !== "Enter") return;
  event.preventDefault();
  step(event.shiftKey ? -1 : 1);
});
steps.addEventListener("click", ({ target }) => step(Number(target.closest("button")?.dataset.by ?? 0)));

log.addEventListener("scroll", () => {
  if (!words()) follow.checked = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
});
follow.addEventListener("change", keepUp);

function isOpen() {
  return Boolean(document.getElementById("job-live").dataset.liveTopics);
}

setInterval(() => isOpen() && readOn(), READ_EVERY_MS);
document.addEventListener("pitwall:job", ({ detail }) => String(detail.id) === log.dataset.job && readOn());
document.addEventListener("htmx:afterSettle", readOn);
readOn();
