// Plotly in the page's colours. Figures say what to draw; the theme's colours come from the stylesheet's tokens.

const charts = new Set();
const config = {
  displaylogo: false,
  responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toggleSpikelines"],
  toImageButtonOptions: { format: "png", scale: 2, filename: "pitwall" },
};

export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function seriesColour(place) {
  return token(`series-${(place % 6) + 1}`);
}

function axis(more = {}) {
  return {
    gridcolor: token("line"),
    linecolor: token("line-strong"),
    tickcolor: token("line-strong"),
    zerolinecolor: token("line-strong"),
    ticks: "outside",
    ticklen: 4,
    automargin: true,
    minexponent: 5, // a learning rate of 0.0003, not of 300µ
    exponentformat: "power", // a loss of 3×10¹⁰, not of 30B
    separatethousands: true,
    ...more,
    title: { ...more.title, standoff: 10, font: { size: 12, color: token("ink-3") } },
  };
}

// Words that lines may cross: those pass behind them.
function annotation(mark) {
  return { ...mark, bgcolor: token("surface"), opacity: 0.85, borderpad: 0, font: { size: 11, color: token("ink-2") } };
}

export function themed(layout = {}) {
  return {
    ...layout,
    margin: { l: 56, r: 18, t: 18, b: 44, ...layout.ownMargin },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: token("sans"), size: 12, color: token("ink-2") },
    hoverlabel: {
      bgcolor: token("surface"),
      bordercolor: token("line-strong"),
      font: { family: token("sans"), size: 12, color: token("ink") },
    },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: token("ink-3"), activecolor: token("accent") },
    legend: { ...layout.legend, font: { color: token("ink-2"), size: 12 } },
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    ...Object.fromEntries(Object.keys(layout).filter((name) => /^[xy]axis\d+$/.test(name)).map((name) => [name, axis(layout[name])])),
    ...(layout.annotations && { annotations: layout.annotations.map(annotation) }),
  };
}

// A figure in the theme's series colours. Each trace's `meta` tells the place of its job or group (`places` for bars that
// have one each); what has none is coloured by its place in the figure, and what is no job's (a front) like the text.
export function inSeriesColours(data) {
  return data.map((trace, index) => {
    const { place = index, places, part } = trace.meta ?? {};
    if (trace.type === "bar" && (places || !trace.meta)) {
      return { ...trace, marker: { ...trace.marker, color: trace.y.map((_, i) => seriesColour(places?.[i] ?? i)) } };
    }
    const colour = part === "front" ? token("ink-2") : seriesColour(place);
    const coloured = { ...trace, line: { ...trace.line, color: colour }, marker: { ...trace.marker, color: colour } };
    if (trace.fillcolor) coloured.fillcolor = thin(colour);
    return coloured;
  });
}

function thin(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},0.17)`;
}

const LEGEND = { character: 7.4, swatch: 60, row: 19.5, gap: 14 }; // pixels, as Plotly sets 12 px

// A legend along the lower edge, and what it takes of a box's height: Plotly would take that from the plot.
export function legendBelow(data, width) {
  const names = data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name ?? "");
  const entrywidth = LEGEND.character * Math.max(...names.map((text) => text.length));
  const columns = Math.max(1, Math.floor(width / (entrywidth + LEGEND.swatch)));
  const place = { orientation: "h", traceorder: "normal", x: 0, xanchor: "left", yref: "container", y: 0, yanchor: "bottom" };
  const height = Math.ceil(names.length / columns) * LEGEND.row + LEGEND.gap;
  return { height, legend: { ...place, entrywidth, maxheight: height } };
}

export function draw(box, figure) {
  const isFirst = !box.classList.contains("js-plotly-plot");
  charts.add(box);
  showFiles(box, true);
  box.querySelector(":scope > .chart__none")?.remove();
  box.pitwallFigure = figure;
  const drawn = window.Plotly.react(box, figure.data, themed(figure.layout), config);
  if (isFirst) drawThinlyWhileMoved(box);
  return drawn;
}

// While the reader drags a plot it is painted anew for every frame: hairlines without dashes take a tenth of the time.
function drawThinlyWhileMoved(box) {
  box.on("plotly_relayouting", () => box.classList.add("is-moved"));
  box.on("plotly_relayout", () => box.classList.remove("is-moved"));
}

window.addEventListener("pointerup", () => {
  for (const box of document.querySelectorAll(".is-moved")) box.classList.remove("is-moved");
});

// A sentence in a chart's place.
export function say(box, text) {
  if (box.classList.contains("js-plotly-plot")) {
    window.Plotly.purge(box);
    box.classList.remove("js-plotly-plot");
  }
  box.pitwallFigure = null;
  box.style.height = "";
  box.replaceChildren(Object.assign(document.createElement("p"), { className: "chart__none", textContent: text }));
  showFiles(box, false);
}

function showFiles(box, isDrawn) {
  box.closest(".panel")?.querySelector(".chart-files")?.toggleAttribute("hidden", !isDrawn);
}

document.addEventListener("pitwall:theme", () => {
  for (const box of charts) if (box.isConnected && box.pitwallFigure) box.dispatchEvent(new CustomEvent("recolour"));
});

export function checkedIn(selector) {
  return document.querySelector(`${selector} input:checked`)?.value;
}
