// The comparison's charts: figures come with the page, the axes are chosen here.

import { checkedIn, draw, inSeriesColours } from "./charts.js";

const element = document.getElementById("figures");
const figures = element ? JSON.parse(element.textContent) : null;
const curves = document.getElementById("compare-curves");

function drawCurves() {
  const x = checkedIn("[data-chart-x]") ?? "step";
  const y = checkedIn("[data-chart-y]") ?? "linear";
  const figure = figures[`curves-${x}`];
  const layout = { ...figure.layout, uirevision: `${x}|${y}`, hovermode: "x unified", yaxis: { ...figure.layout.yaxis, type: y } };
  layout.legend = { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" };
  layout.xaxis = { ...layout.xaxis, rangemode: "nonnegative" };
  layout.showlegend = window.innerWidth > 760; // the runs above the chart are its legend too
  draw(curves, { data: inSeriesColours(figure.data), layout });
  const address = new URL(location.href);
  address.searchParams.set("x", x);
  history.replaceState(null, "", address);
}

function drawBars() {
  for (const box of document.querySelectorAll("[data-figure]")) {
    const figure = figures[box.dataset.figure];
    draw(box, { data: inSeriesColours(figure.data), layout: { ...figure.layout, bargap: 0.45 } });
  }
}

function drawAll() {
  drawCurves();
  drawBars();
}

if (figures) {
  if (document.readyState === "complete") drawAll();
  else window.addEventListener("load", drawAll);
  document.addEventListener("pitwall:theme", drawAll);
  document.addEventListener("change", ({ target }) => target.closest("[data-chart-x], [data-chart-y]") && drawCurves());
}
document.addEventListener("change", ({ target }) => {
  if (target.matches("#series, #add-job") && target.value) target.form.requestSubmit();
});
document.getElementById("add-run")?.addEventListener("formdata", ({ formData }) => {
  // The added job comes last, as one list in the address.
  const [added, ...others] = formData.getAll("jobs");
  formData.delete("jobs");
  formData.set("jobs", [...others, added].filter(Boolean).join(","));
});
