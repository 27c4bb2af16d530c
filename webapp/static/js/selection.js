// Which jobs are ticked on this page. Ticks outlive every refresh of the table, and every page of the list.

const bar = document.getElementById("compare-bar");
const key = bar ? `pitwall-ticked${location.pathname}` : "";
const chosen = new Set(read());
const listeners = [];
let last = null; // the tick that was set last: with Shift everything up to the next one is set too

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "[]");
  } catch {
    return [];
  }
}

export function ticked() {
  return [...chosen].sort((a, b) => a - b);
}

export function onChange(listener) {
  listeners.push(listener);
  listener(ticked());
}

export function clear() {
  chosen.clear();
  show();
}

function boxes() {
  return [...document.querySelectorAll(".tick")];
}

export function show() {
  if (!bar) return;
  for (const box of boxes()) box.checked = chosen.has(box.value);
  const all = document.getElementById("tick-all");
  if (all) {
    const set = boxes().filter((box) => box.checked).length;
    all.checked = set > 0 && set === boxes().length;
    all.indeterminate = set > 0 && !all.checked;
  }
  sessionStorage.setItem(key, JSON.stringify([...chosen]));
  bar.hidden = chosen.size === 0;
  const count = document.getElementById("compare-count");
  count.textContent = chosen.size === 1 ? count.dataset.one : count.dataset.many.replace("{n}", chosen.size);
  for (const listener of listeners) listener(ticked());
}

function set(box, isChecked) {
  if (isChecked) chosen.add(box.value);
  else chosen.delete(box.value);
}

function range(from, to) {
  const all = boxes();
  const ends = [all.findIndex((box) => box.value === from), all.indexOf(to)].sort((a, b) => a - b);
  return ends[0] < 0 ? [to] : all.slice(ends[0], ends[1] + 1);
}

let isShift = false;
document.addEventListener("click", (event) => (isShift = event.shiftKey), true);
document.addEventListener("change", ({ target }) => {
  if (target.matches(".tick")) {
    for (const box of isShift && last ? range(last, target) : [target]) set(box, target.checked);
    last = target.value;
    show();
  }
  if (target.matches("#tick-all")) {
    for (const box of boxes()) set(box, target.checked);
    show();
  }
});
document.getElementById("compare-clear")?.addEventListener("click", clear);
document.addEventListener("htmx:afterSettle", show);
show();
