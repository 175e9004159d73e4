// Draws the figures of #charts-data with plotly, in the colours of the page.
"use strict";
(function () {
  const figures = JSON.parse(document.getElementById("charts-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function readColor(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function paint(trace) {
    if (!trace.meta) return trace;
    if (trace.meta.ramp) {
      const colorscale = [[0, readColor("rule")], [1, readColor(trace.meta.ramp)]];
      return { ...trace, colorscale, colorbar: { ...trace.colorbar, tickfont: { size: 12 } } };
    }
    const color = readColor(trace.meta.part);
    if (trace.meta.faint) return { ...trace, fillcolor: `${color}2e` };
    const marker = { ...trace.marker, color };
    if (marker.line) marker.line = { ...marker.line, color };
    return { ...trace, marker, line: { color, width: trace.meta.width || 2 } };
  }

  function dress(layout) {
    const size = 13;
    const axis = {
      gridcolor: readColor("rule"),
      linecolor: readColor("line"),
      zerolinecolor: readColor("line"),
      fixedrange: true,
    };
    return {
      ...layout,
      xaxis: { ...axis, ...layout.xaxis, title: { ...layout.xaxis.title, font: { size } } },
      yaxis: { ...axis, ...layout.yaxis, title: { ...layout.yaxis.title, font: { size } } },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size, color: readColor("quiet") },
      hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily, size }, align: "left" },
      margin: { l: 48, r: 12, t: 12, b: 44, ...layout.margin },
      showlegend: false, // the page has one, which wraps on narrow screens
    };
  }

  function draw() {
    for (const [name, figure] of Object.entries(figures)) {
      const place = document.getElementById(`chart-${name}`);
      if (!place || !figure) continue;
      window.Plotly.react(place, figure.data.map(paint), dress(figure.layout), {
        displayModeBar: false,
        responsive: true,
      });
    }
  }

  dark.addEventListener("change", draw);
  draw();
})();
