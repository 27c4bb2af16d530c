// Any chart as a file: SVG and PNG in the page's colours on its ground, or the numbers that are drawn as CSV.

import { token } from "./charts.js";

function nameOf(panel) {
  const title = panel.querySelector("h2")?.textContent.trim() ?? "chart";
  return `pitwall-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}`;
}

function save(name, href) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

async function savePicture(box, format, name) {
  const { width, height } = box.getBoundingClientRect();
  const layout = { ...box.layout, paper_bgcolor: token("surface"), plot_bgcolor: token("surface"), showlegend: box.data.length > 1 };
  const scale = format === "png" ? 2 : 1;
  const href = await window.Plotly.toImage({ data: box.data, layout }, { format, width: Math.round(width), height: Math.round(height), scale });
  save(`${name}.${format}`, href);
}

function field(value) {
  const plain = value === null || value === undefined ? "" : String(value);
  const text = /^[=+\-@\t]/.test(plain) && Number.isNaN(Number(plain)) ? `'${plain}` : plain; // else a spreadsheet takes it for a formula
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function titleOf(axis, fallback) {
  return axis?.title?.text || fallback;
}

// A row for each point; bars stand at numbers, whose names are the axis' ticks. Where points stand on scales without ticks,
// of 0 to 1, their texts are the values.
export function tableOf(box) {
  const { xaxis, yaxis } = box.layout;
  const worded = (axis, value) => axis?.ticktext?.[axis.tickvals.indexOf(value)] ?? value;
  const rows = [["line", "part", titleOf(xaxis, "x"), titleOf(yaxis, "y")]];
  for (const trace of box.data) {
    if (trace.z) {
      trace.z.forEach((row, up) => row.forEach((value, across) => rows.push([trace.y[up], trace.type, trace.x[across], value])));
      continue;
    }
    const values = yaxis?.showticklabels === false && trace.text ? trace.text : trace.y;
    const count = Math.max(trace.x?.length ?? 0, trace.y?.length ?? 0);
    for (let i = 0; i < count; i += 1) {
      rows.push([trace.name ?? "", trace.meta?.part ?? trace.type, worded(xaxis, trace.x?.[i] ?? trace.text?.[i]), worded(yaxis, values?.[i])]);
    }
  }
  return `${rows.map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
}

function saveTable(box, name) {
  const href = URL.createObjectURL(new Blob([tableOf(box)], { type: "text/csv" }));
  save(`${name}.csv`, href);
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-chart-file]");
  if (!button) return;
  const panel = button.closest(".panel");
  const box = panel.querySelector(".js-plotly-plot");
  button.closest("details").open = false;
  if (!box) return;
  if (button.dataset.chartFile === "csv") saveTable(box, nameOf(panel));
  else savePicture(box, button.dataset.chartFile, nameOf(panel));
});
