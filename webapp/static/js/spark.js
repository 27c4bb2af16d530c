// Small loss curves of our own on the list: a line of SVG each, fed by the same live points as the big chart.

import { significant } from "./format.js";

const WIDTH = 240;
const HEIGHT = 64;
const MOST_POINTS = 600;
const curves = new Map(); // job id -> {attempt, sequence, step, wall, y}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function draw(box) {
  const curve = curves.get(box.dataset.spark);
  const points = curve ? curve.y.map((y, i) => [curve.step[i], y]).filter(([, y]) => Number.isFinite(y)) : [];
  if (points.length < 2) return;
  const total = Number(box.dataset.total) || points.at(-1)[0];
  const values = points.map(([, y]) => y);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (step) => (step / Math.max(total, points.at(-1)[0])) * WIDTH;
  const y = (value) => HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 8);
  const line = points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const area = `${line}L${x(points.at(-1)[0]).toFixed(1)} ${HEIGHT}L${x(points[0][0]).toFixed(1)} ${HEIGHT}Z`;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
  picture.append(
    svg("path", { class: "spark__base", d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }),
    svg("path", { class: "spark__fill", d: area }),
    svg("path", { class: "spark__line", d: line }),
  );
  box.replaceChildren(picture);
  showFigures(box.dataset.spark, curve);
}

function showFigures(id, curve) {
  const last = curve.y.length - 1;
  const first = Math.max(0, last - 40);
  const stepTime = ((curve.wall[last] - curve.wall[first]) / (curve.step[last] - curve.step[first])) * 1000;
  const card = document.querySelector(`[data-card="${id}"]`);
  if (!card?.classList.contains("track-card--live")) return;
  card.querySelector("[data-spark-loss]").textContent = significant(curve.y[last]);
  card.querySelector("[data-spark-time]").textContent = significant(stepTime, 3);
}

function add(curve, points) {
  const newest = curve.step.at(-1) ?? 0;
  points.step.forEach((step, i) => {
    if (step <= newest) return;
    curve.step.push(step);
    curve.wall.push(points.wall[i]);
    curve.y.push(points.y[i] ?? NaN);
  });
  if (curve.step.length > MOST_POINTS) {
    // Every other point of the older half suffices for a picture of this size.
    for (const key of ["step", "wall", "y"]) {
      curve[key] = curve[key].filter((_, i, all) => i > all.length / 2 || i % 2 === 0);
    }
  }
}

async function load(box) {
  const answer = await fetch(`${box.dataset.url}?spark`, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return;
  const data = await answer.json();
  const curve = { attempt: data.attempt, sequence: data.sequence, step: [], wall: [], y: [] };
  add(curve, data.series.train_loss ?? { step: [], wall: [], y: [] });
  curves.set(box.dataset.spark, curve);
  draw(box);
}

export function drawAll({ again = false } = {}) {
  for (const box of document.querySelectorAll("[data-spark]")) {
    const known = curves.get(box.dataset.spark);
    if (known && !again && String(known.attempt) === box.dataset.attempt) draw(box);
    else load(box);
  }
}

document.addEventListener("pitwall:points", ({ detail }) => {
  const box = document.querySelector(`[data-spark="${detail.job}"]`);
  const curve = curves.get(String(detail.job));
  if (!box) return;
  if (!curve || curve.attempt !== detail.attempt) return void load(box);
  if (detail.series.train_loss) add(curve, detail.series.train_loss);
  draw(box);
});
document.addEventListener("pitwall:hello", () => drawAll({ again: true }));
