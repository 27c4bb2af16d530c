// A report's charts, in the page's colours. A plain script, so that a report that was saved as a file can carry it.
(function () {
  const holder = document.getElementById("study-figures"); // none while nothing was measured
  const figures = holder ? JSON.parse(holder.textContent) : {};
  const config = { displaylogo: false, responsive: true, displayModeBar: false };

  function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function axis(own) {
    const title = { ...own.title, standoff: 10, font: { size: 12, color: token("ink-3") } };
    return { ...own, minexponent: 5, separatethousands: true, gridcolor: token("line"), linecolor: token("line-strong"), zerolinecolor: token("line"), automargin: true, title };
  }

  function themed(layout) {
    return {
      ...layout,
      margin: { l: 16, r: 20, t: 12, b: 44 },
      font: { family: token("sans"), size: 12, color: token("ink-2") },
      hoverlabel: { bgcolor: token("surface"), bordercolor: token("line-strong"), font: { color: token("ink") } },
      xaxis: axis(layout.xaxis),
      yaxis: axis(layout.yaxis),
    };
  }

  function draw() {
    for (const box of document.querySelectorAll("[data-figure]")) {
      const figure = figures[box.dataset.figure];
      box.setAttribute("aria-label", figure.layout.meta.alternative);
      box.style.height = `${figure.layout.height}px`;
      window.Plotly.react(box, figure.data, themed(figure.layout), config);
    }
  }

  document.addEventListener("pitwall:theme", draw);
  draw();
})();
