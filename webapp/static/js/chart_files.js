// Any chart as a file: SVG and PNG in the page's colours on its ground, or the numbers that are drawn as CSV.

import { legendBelow, token } from "./charts.js";

function nameOf(panel) {
  const title = panel.querySelector("h2")?.textContent.trim() ?? "chart";
  return `pitwall-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}`;
}

// As a blob: browsers drop an address that holds a picture of more than some megabytes.
function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Beside the page nothing else says which line is whose: a picture without a legend grows by one.
function withLegend(box, width) {
  if (box.data.length < 2 || box.layout.showlegend) return { more: 0 };
  const { height, legend } = legendBelow(box.data, width);
  const margin = { ...box.layout.margin, b: box.layout.margin.b + height };
  return { showlegend: true, legend: { ...box.layout.legend, ...legend }, margin, more: height };
}

async function savePicture(box, format, name) {
  const { width, height: drawn } = box.getBoundingClientRect();
  const { more, ...legend } = withLegend(box, width);
  const height = drawn + more;
  const layout = { ...box.layout, paper_bgcolor: token("surface"), plot_bgcolor: token("surface"), ...legend };
  const scale = format === "png" ? 2 : 1;
  const picture = await window.Plotly.toImage({ data: box.data, layout }, { format, width: Math.round(width), height: Math.round(height), scale, imageDataOnly: true });
  if (format === "svg") save(`${name}.svg`, picture, "image/svg+xml");
  else save(`${name}.png`, Uint8Array.from(atob(picture), (character) => character.charCodeAt(0)), "image/png");
}

function field(value) {
  const plain = value === null || value === undefined ? "" : String(value);
  const text = /^[=+\-@\t]/.test(plain) && Number.isNaN(Number(plain)) ? `'${plain}` : plain; // else a spreadsheet takes it for a formula
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function titleOf(axis, fallback) {
  return axis?.title?.text || fallback;
}

// A row for each point; bars stand at numbers, whose names are the axis' ticks, or told in full where the pointer is. Where
// points stand on scales without ticks, of 0 to 1, their texts are the values.
export function tableOf(box) {
  const { xaxis, yaxis } = box.layout;
  const worded = (axis, value, name) =>
    axis?.ticktext ? (name ?? axis.ticktext[axis.tickvals.indexOf(value)]?.replaceAll("<br>", " ") ?? value) : value;
  const rows = [["line", "part", titleOf(xaxis, "x"), titleOf(yaxis, "y")]];
  for (const trace of box.data) {
    if (trace.z) {
      trace.z.forEach((row, up) => row.forEach((value, across) => rows.push([trace.y[up], trace.type, trace.x[across], value])));
      continue;
    }
    const values = yaxis?.showticklabels === false && trace.text ? trace.text : trace.y;
    const count = Math.max(trace.x?.length ?? 0, trace.y?.length ?? 0);
    for (let i = 0; i < count; i += 1) {
      rows.push([trace.name ?? "", trace.meta?.part ?? trace.type, worded(xaxis, trace.x?.[i], trace.hovertext?.[i]), worded(yaxis, values?.[i], trace.hovertext?.[i])]);
    }
  }
  return `${rows.map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-chart-file]");
  if (!button) return;
  const panel = button.closest(".panel");
  const box = panel.querySelector(".js-plotly-plot");
  button.closest("details").open = false;
  if (!box) return;
  if (button.dataset.chartFile === "csv") save(`${nameOf(panel)}.csv`, tableOf(box), "text/csv");
  else savePicture(box, button.dataset.chartFile, nameOf(panel));
});
