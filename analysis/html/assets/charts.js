// The charts: lines by uPlot that differ by dash as well as by colour, with their data to download.
edgefl.dashes = [[], [8, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 2], [1, 2]];

edgefl.STEPS = { // steps between two grid lines, in units: hours and minutes have their own, and counts are whole
  h: [0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 72, 168], min: [0.5, 1, 2, 5, 10, 15, 30, 60],
  counts: [1, 10, 100, 1e3, 1e4, 1e5].flatMap((v) => [v, 2 * v, 5 * v]),
};

edgefl.plot = (into, options) => {
  // options: {x, lines: [{label, y, look}], xLabel, height, share, time, clock, step, legend, title, marks, range}
  const axis = (label, values, size) => ({
    stroke: () => edgefl.css("--soft"), grid: { stroke: () => edgefl.css("--line"), width: 1 },
    ticks: { stroke: () => edgefl.css("--line") }, label, labelSize: label ? 20 : 0, size, values,
    font: "12px system-ui", labelFont: "12px system-ui",
  });
  const number = (u, splits) => splits.map((v) => (v === null ? "" : +v.toPrecision(6)).toLocaleString("en"));
  const clock = options.clock, [unit, size] = clock ? ["h", clock.day_s / 24] : options.time ? edgefl.timeUnit((options.range || options.x).at(-1) || 1) : ["counts", 1];
  const times = (u, splits) => splits.map((v) => (v === null ? "" : clock ? edgefl.ofDay(v, clock) : +(v / size).toPrecision(6)).toLocaleString("en"));
  const xLabel = clock && options.xLabel ? "time of day" : options.time && options.xLabel ? `${options.xLabel.replace(/, s$/, "")}, ${unit}` : options.xLabel;
  const across = { ...axis(xLabel, options.time ? times : number, xLabel ? 44 : 26), ...(edgefl.STEPS[unit] ? { incrs: edgefl.STEPS[unit].map((v) => v * size) } : {}) };
  const percent = (u, splits) => splits.map((v) => `${+(100 * v).toFixed(2)}\u00a0%`);
  const counted = !options.share && options.lines.every((line) => line.y.every((v) => v == null || Number.isInteger(v)));
  const up = { ...axis(undefined, options.share ? percent : number, 62), ...(counted ? { incrs: edgefl.STEPS.counts } : {}) };
  const marks = (u) => {
    u.ctx.save();
    u.ctx.strokeStyle = edgefl.css("--soft");
    u.ctx.setLineDash([2, 4]);
    u.ctx.beginPath();
    for (const t of options.marks || []) {
      const x = Math.round(u.valToPos(t, "x", true));
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    }
    u.ctx.stroke();
    u.ctx.restore();
  };
  const width = Math.max(220, into.clientWidth);
  const looks = options.lines.map((line, i) => line.look ?? i), words = ["solid", "dashed", "dotted"];
  const marked = (u, i) => words[i ? Math.min(edgefl.pattern(looks[i - 1]), 2) : 0];
  const plot = new uPlot({
    width, height: options.height, title: options.title, legend: { show: options.legend !== false, markers: { width: 3, dash: marked } },
    cursor: { drag: { x: options.legend !== false, y: false }, points: { size: 6 } },
    scales: { x: { time: false, ...(options.range ? { range: () => options.range } : {}) },
      ...(options.share ? {} : { y: { range: (u, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08] } }) },
    axes: [across, up],
    series: [{ label: xLabel || "time, s", value: (u, v) => (v === null || v === undefined ? "" : clock ? edgefl.ofDay(v, clock) : +(v / size).toPrecision(6)) },
      ...options.lines.map((line, i) => ({
        label: line.label, stroke: () => (line.look === null ? edgefl.css("--ink") : edgefl.colour(looks[i])), width: 2, dash: edgefl.dashes[edgefl.pattern(looks[i])], spanGaps: true,
        points: { show: false }, paths: options.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (u, v) => (v === null || v === undefined ? "" : options.share ? `${(100 * v).toFixed(1)}\u00a0%` : edgefl.amount(v)),
      }))],
    hooks: { draw: [marks] },
  }, [options.x, ...options.lines.map((line) => line.y)], into);
  edgefl.plots.push({ plot, into, height: options.height });
  return plot;
};
edgefl.plots = [];

edgefl.chart = (chart) => {
  const figure = document.createElement("figure");
  figure.className = "chart";
  figure.id = "chart-" + chart.id;
  const caption = document.createElement("figcaption");
  caption.append(`${chart.title} (${chart.share ? "%" : chart.y})`);
  const plot = document.createElement("div");
  plot.className = "plot";
  const about = document.createElement("span");
  about.className = "about";
  let shown = chart.views[0];
  const draw = () => {
    edgefl.plots = edgefl.plots.filter((entry) => entry.into !== plot || entry.plot.destroy());
    plot.replaceChildren();
    const filled = shown.series.filter((line) => line.x.length);
    if (!filled.length) return plot.append("No data.");
    const [x, ...ys] = uPlot.join(filled.map((line) => [line.x, line.y]));
    const lines = filled.map((line, i) => ({ label: line.label, y: ys[i], look: line.look }));
    edgefl.plot(plot, { x, lines, xLabel: shown.x, height: 260, share: chart.share, time: /time/.test(shown.x), clock: /time/.test(shown.x) ? edgefl.data.clock : null, step: /time/.test(shown.x) });
  };
  const words = () => {
    const every = Math.max(...shown.series.map((line) => line.every));
    about.textContent = [chart.about, shown.about].filter(Boolean).join(" ") + (every > 1 ? ` Thinned: every ${every}th point of the longest line.` : "");
  };
  if (chart.views.length > 1) {
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", "x axis of " + chart.title);
    chart.views.forEach((view, i) => choice.append(new Option(view.label, i)));
    choice.onchange = () => { shown = chart.views[choice.value]; draw(); words(); };
    caption.append(choice);
  }
  const button = document.createElement("button");
  button.type = "button";
  button.className = "download";
  button.textContent = "CSV";
  button.setAttribute("aria-label", "Data of " + chart.title + " as CSV");
  button.onclick = () => edgefl.download(chart.id + ".csv", edgefl.csv([["line", shown.x, chart.y],
    ...shown.series.flatMap((line) => line.x.map((x, i) => [line.label, x, line.y[i]]))]));
  caption.append(button, about);
  figure.append(caption, plot);
  document.getElementById("chart-list").append(figure);
  words();
  draw();
};
