// One EventSource a page: it says what changed; the page fetches it. Closed while the tab is hidden, opened again with
// backoff when it is lost. After every (re)connect the server says `hello`, and everything stored later will be told;
// charts then fetch what they missed, and parts whose version differs are fetched anew, so that there is no gap.

const status = document.getElementById("live-status");
const LONGEST_WAIT_MS = 15000;

let source = null;
let topics = "";
let failures = 0;
let retry = 0;

function wantedTopics() {
  const names = new Set();
  for (const element of document.querySelectorAll("[data-live-topics]")) {
    for (const name of element.dataset.liveTopics.split(",")) if (name) names.add(name);
  }
  return [...names].sort().join(",");
}

function show(state) {
  status.hidden = !topics;
  status.dataset.live = state;
}

function tell(name, detail) {
  document.dispatchEvent(new CustomEvent(`pitwall:${name}`, { detail }));
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function connect() {
  close();
  topics = wantedTopics();
  show(failures ? "lost" : "off");
  if (!topics || document.hidden) return;
  const opened = new EventSource(`${status.dataset.url}?topics=${encodeURIComponent(topics)}`);
  source = opened;
  const on = (name, handle) => opened.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  on("hello", () => {
    failures = 0;
    show("on");
    tell("hello", {});
  });
  on("away", () => show("database"));
  on("resync", () => {
    refreshAll();
    tell("hello", {});
  });
  on("job", jobChanged);
  on("gone", (job) => tell("gone", job));
  on("points", (points) => tell("points", points));
  on("jobs", ({ version }) => versionSeen("listVersion", version));
  on("queue", ({ version }) => versionSeen("queueVersion", version));
  on("study", ({ version }) => versionSeen("studyVersion", version));
  on("fleet", ({ version }) => versionSeen("fleetVersion", version));
  opened.onerror = () => lost(opened);
}

function lost(which) {
  if (which !== source) return;
  close();
  failures += 1;
  if (failures > 1) show("lost");
  const wait = Math.min(LONGEST_WAIT_MS, 250 * 2 ** failures) * (0.75 + Math.random() / 2);
  retry = setTimeout(connect, wait);
}

// ------------------------------------------------------- parts of the page

const lastRefresh = new Map();

function refresh(selector) {
  const known = lastRefresh.get(selector) ?? { at: 0, timer: 0 };
  lastRefresh.set(selector, known);
  if (known.timer) return;
  known.timer = setTimeout(() => {
    known.timer = 0;
    known.at = Date.now();
    const element = document.querySelector(selector);
    if (element) window.htmx.trigger(element, "live-refresh");
  }, Math.max(0, known.at + 800 - Date.now()));
}

function refreshAll() {
  for (const element of document.querySelectorAll("[data-refresh]")) refresh(element.dataset.refresh);
}

function versionSeen(key, version) {
  for (const element of document.querySelectorAll("[data-refresh]")) {
    if (element.dataset[key] && element.dataset[key] !== version) refresh(element.dataset.refresh);
  }
}

function jobChanged(job) {
  for (const element of document.querySelectorAll(`[data-job-state="${job.id}"]`)) {
    const { state, phase, attempt } = element.dataset;
    const known = `${state}|${phase}|${attempt}|${"cancel" in element.dataset}`;
    if (known !== `${job.state}|${job.phase}|${job.attempt ?? ""}|${job.cancel}`) refresh(element.dataset.refresh);
  }
  setStep(job.id, job.step);
  tell("job", job);
}

function setStep(id, step) {
  const text = new Intl.NumberFormat(document.documentElement.lang).format(step);
  for (const element of document.querySelectorAll(`[data-job-step="${id}"]`)) element.textContent = text;
  for (const element of document.querySelectorAll(`[data-job-meter="${id}"]`)) {
    const total = Number(element.dataset.total);
    if (total) element.style.width = `${Math.min(100, (100 * step) / total)}%`;
  }
}

export function start() {
  if (!status) return;
  connect();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : connect()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => event.persisted && connect());
  document.addEventListener("htmx:afterSettle", () => {
    if (wantedTopics() !== topics) connect();
  });
  window.addEventListener("online", connect);
}
