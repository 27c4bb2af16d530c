// A queue's line: a job is dragged by its handle, or moved with the arrow keys on it. What is ticked is acted on.
// While a job is under way the page is not refreshed, so that nothing moves away under the hand.

import "./act.js";
import "./selection.js";

const KEY_WAIT_MS = 600; // several strokes of an arrow key are one move
let dragged = null;
let numSending = 0; // moves of which the server has not answered yet
let isRefreshDue = false;
let timer = 0;

const rows = (body) => [...body.querySelectorAll("tr[data-job]")];

function cookie(name) {
  return document.cookie.split("; ").find((part) => part.startsWith(`${name}=`))?.split("=")[1] ?? "";
}

function token() {
  return document.querySelector("#act-dialog input[name=csrfmiddlewaretoken]")?.value ?? cookie("csrftoken");
}

function places(body) {
  return rows(body).map((row) => Number(row.dataset.place)).sort((a, b) => a - b);
}

function announce(row) {
  const body = row.closest("[data-line]");
  const place = places(body)[rows(body).indexOf(row)];
  const text = body.dataset.status.replace("{id}", row.dataset.job).replace("{place}", place);
  document.getElementById("line-status").textContent = text;
}

async function send(row) {
  const body = row.closest("[data-line]");
  const before = row.previousElementSibling?.dataset.job ?? body.dataset.after;
  const data = new URLSearchParams({ act: "place", jobs: row.dataset.job, after: before, csrfmiddlewaretoken: token() });
  // The answer leads to a page that shows the message; the refresh below fetches it instead.
  numSending += 1;
  await fetch(body.dataset.url, { method: "POST", body: data, redirect: "manual" }).catch(() => null);
  numSending -= 1;
  refresh();
}

// Now, or once the hand has let go.
function refresh() {
  isRefreshDue = isHeld();
  if (!isRefreshDue) window.htmx.trigger("#queue", "live-refresh");
}

const isHeld = () => dragged !== null || numSending > 0;

function finish() {
  dragged.classList.remove("is-dragged");
  dragged = null;
}

function isMoved(row) {
  return rows(row.closest("[data-line]")).indexOf(row) !== Number(row.dataset.from);
}

function take(row) {
  row.dataset.from = rows(row.closest("[data-line]")).indexOf(row);
  row.classList.add("is-dragged");
  dragged = row;
}

function follow(event) {
  const body = dragged.closest("[data-line]");
  const others = rows(body).filter((row) => row !== dragged);
  const next = others.find((row) => {
    const box = row.getBoundingClientRect();
    return event.clientY < box.top + box.height / 2;
  });
  if ((next ?? null) !== dragged.nextElementSibling) body.insertBefore(dragged, next ?? null);
}

function drop() {
  document.removeEventListener("pointermove", follow);
  if (!dragged) return;
  const row = dragged;
  finish();
  if (isMoved(row)) {
    announce(row);
    send(row);
  } else if (isRefreshDue) {
    refresh();
  }
}

document.addEventListener("pointerdown", (event) => {
  const grip = event.target.closest(".grip");
  if (!grip || event.button !== 0 || dragged) return;
  event.preventDefault(); // no text is selected, and a finger does not scroll
  grip.focus();
  take(grip.closest("tr"));
  document.addEventListener("pointermove", follow);
  document.addEventListener("pointerup", drop, { once: true });
  document.addEventListener("pointercancel", drop, { once: true });
});

document.addEventListener("keydown", (event) => {
  const grip = event.target.closest(".grip");
  if (!grip || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const row = grip.closest("tr");
  const neighbour = event.key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
  if (!neighbour) return;
  if (dragged !== row) take(row);
  if (event.key === "ArrowUp") neighbour.before(row);
  else neighbour.after(row);
  grip.focus();
  announce(row);
  clearTimeout(timer);
  timer = setTimeout(drop, KEY_WAIT_MS);
});

document.addEventListener(
  "live-refresh",
  (event) => {
    if (!isHeld()) return;
    event.stopPropagation();
    isRefreshDue = true;
  },
  true,
);

// What was asked for before the hand took hold, and comes now, shows an order that is no longer true.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id !== "queue" || !isHeld()) return;
  event.detail.shouldSwap = false;
  isRefreshDue = true;
});
