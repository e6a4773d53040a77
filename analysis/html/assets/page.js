// Puts the parts together: controls, keys, the clock, and the lines beside the map.
(async () => {
  const { data } = edgefl, get = (id) => document.getElementById(id);
  for (const button of document.querySelectorAll("button[data-table]")) {
    button.onclick = () => edgefl.download(button.dataset.table + ".csv", edgefl.csv(
      [...get("table-" + button.dataset.table).rows].map((row) => [...row.cells].map((cell) => cell.textContent))));
  }
  for (const button of document.querySelectorAll("button[data-text]")) {
    button.onclick = () => edgefl.download(button.dataset.name, get(button.dataset.text).textContent);
  }
  data.charts.forEach(edgefl.chart);

  let replay, nowLines = [], playing = false, before = 0, t = 0;
  const span = () => replay.run.simulated_s, slider = get("time");
  const line = new (class { open() {} draw() {} })();
  let deviceLine = line;

  const text = () => {
    const { run, busy, present, outside } = replay, at = (series) => {
      const i = edgefl.Replay.last(series.x, t, 0, series.x.length);
      return i < 0 ? null : series.y[i];
    };
    const accuracy = at(run.timeline.accuracy), joules = at(run.timeline.joules);
    const sessions = replay.sessions(), session = sessions.filter(([begin]) => begin <= t).pop();
    const parts = [edgefl.time(t)];
    const all = replay.only.cell !== null || replay.only.class !== null ? "in all: " : ""; // a filter counts devices only
    if (session && edgefl.Replay.ofOneCell(sessions)) parts.push(`session\u00a0${session[1]}`);
    const rest = outside ? `, ${outside}\u00a0without a cell` : "";
    parts.push(`${present}\u00a0devices${rest}: ${busy[1]}\u00a0receive, ${busy[2]}\u00a0compute, ${busy[3]}\u00a0send`);
    if (accuracy !== null && run.timeline.accuracy.x.length) parts.push(`${all}${edgefl.data.score || "accuracy"} ${(100 * accuracy).toFixed(1)}\u00a0%`);
    parts.push(`${edgefl.joules(joules || 0)} spent`);
    return parts.join(" · ");
  };
  const show = (time, window = 0) => {
    t = Math.min(Math.max(0, time), span());
    replay.draw(t, window);
    slider.value = Math.round((10000 * t) / span());
    const words = text();
    get("now").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    // a share of the plot's own box: right before the chart has been laid out, and after it has been resized
    for (const mark of nowLines) mark.style.left = `${((100 * t) / span()).toFixed(4)}%`;
    if (replay.selected !== null && (!playing || replay.drawn % 6 === 0)) deviceLine.draw();
  };
  const speed = () => span() / +get("speed").value;
  const tick = (clock) => {
    if (!playing) return;
    const step = Math.min(0.25, (clock - before) / 1000) * speed();
    before = clock;
    if (t + step >= span()) { show(span()); return play(false); }
    show(t + step, Math.max(step, speed() / 30));
    requestAnimationFrame(tick);
  };
  const play = (on) => {
    playing = on;
    get("play").textContent = on ? "❚❚" : "▶";
    get("play").setAttribute("aria-label", on ? "Pause" : "Play");
    if (on) { if (t >= span()) t = 0; before = performance.now(); requestAnimationFrame(tick); }
  };
  const legend = () => {
    get("legend").replaceChildren(...replay.legend().map(([look, name]) => {
      const item = document.createElement("span"), sign = document.createElement("span");
      sign.textContent = look === undefined ? "" : look === null ? "○ " : (replay.mode === "battery" ? "●" : edgefl.SHAPES[edgefl.pattern(look)]) + " ";
      if (look !== null && look !== undefined) sign.style.color = edgefl.colour(look);
      item.append(sign, name);
      return item;
    }), ...[["──", 0, "receives"], ["╌╌", 1, "sends"], ["◎", 6, "computes"]].map(([mark, look, name]) => {
      const item = document.createElement("span"), sign = document.createElement("span");
      sign.textContent = mark + " "; sign.style.color = edgefl.colour(look);
      item.append(sign, name);
      return item;
    }), ...[[true, "⌜⌟", "--ink", "chosen"], [!edgefl.Replay.ofOneCell(replay.sessions()), "┊", "--soft", "a session begins"],
      [replay.handovers.length, "◌", "--mark", "has just handed over"]].filter(([has]) => has).map(([, mark, look, name]) => {
      const item = document.createElement("span"), sign = document.createElement("span");
      sign.textContent = mark + " "; sign.style.color = `var(${look})`;
      item.append(sign, name);
      return item;
    }));
  };
  const select = (device) => {
    replay.selected = device;
    get("device").value = device === null ? "" : device;
    deviceLine.open(device);
    show(t);
  };
  const strip = () => { // sessions of one cell as bands, or the beginnings of all cells' sessions as ticks; below them the number of handovers over time
    const canvas = get("strip"), ratio = Math.min(2, devicePixelRatio || 1), w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = w * ratio; canvas.height = h * ratio;
    const c = canvas.getContext("2d"), edge = 8, x = (s) => edge + (s / span()) * (w - 2 * edge);
    c.scale(ratio, ratio);
    c.font = "11px system-ui";
    const sessions = replay.sessions(), bands = edgefl.Replay.ofOneCell(sessions);
    if (!bands) { c.fillStyle = edgefl.css("--panel"); c.fillRect(edge, 0, w - 2 * edge, 16); }
    sessions.forEach(([begin, number], i) => {
      c.fillStyle = edgefl.css("--soft");
      if (!bands) return c.fillRect(x(begin), 2, 1.5, 12);
      const end = i + 1 < sessions.length ? sessions[i + 1][0] : span();
      c.fillStyle = edgefl.css(i % 2 ? "--line" : "--panel");
      c.fillRect(x(begin), 0, x(end) - x(begin), 16);
      c.fillStyle = edgefl.css("--soft");
      if (x(end) - x(begin) > 16) c.fillText(x(end) - x(begin) > 70 ? `session ${number}` : number, x(begin) + 4, 12);
    });
    const bins = new Uint16Array(Math.ceil(w / 3)); // handovers per 3 pixels: more handovers, a taller bar
    for (const i of replay.handovers) bins[Math.floor(x(replay.events.time_s[i]) / 3)]++;
    const most = Math.max(4, ...bins);
    c.fillStyle = edgefl.css("--mark");
    bins.forEach((count, i) => { const tall = count && Math.max(2, (9 * count) / most); c.fillRect(3 * i, 26 - tall, 2, tall); });
  };
  const lines = () => {
    const { timeline, population } = replay.run, begins = [...new Set(replay.sessions().map(([begin]) => begin))];
    const marks = begins.length > 60 ? [] : begins; // more lines would hide the curve
    edgefl.plots = edgefl.plots.filter((entry) => !entry.small || entry.plot.destroy());
    nowLines = [];
    const add = (id, title, x, series, share) => {
      const into = get(id);
      into.replaceChildren();
      if (!x.length) return;
      const plot = edgefl.plot(into, { x, lines: series, height: 142, title, share, time: true, clock: edgefl.clock, step: true, legend: false, marks, range: [0, span()] });
      edgefl.plots[edgefl.plots.length - 1].small = true;
      const mark = document.createElement("div");
      mark.className = "now";
      plot.over.append(mark);
      nowLines.push(mark);
      plot.over.addEventListener("click", (event) => show(plot.posToVal(event.offsetX, "x")));
    };
    const score = edgefl.data.score || "accuracy", Score = (edgefl.data.score || "Accuracy") + (edgefl.Replay.ofOneCell(timeline.sessions) ? "" : ", mean of cells");
    const by = edgefl.clock ? ", by time of day" : `, by simulated time in ${edgefl.timeUnit(span())[0]}`; // of all lines: the first states it
    add("line-accuracy", Score + by, timeline.accuracy.x, [{ label: score, y: timeline.accuracy.y }], true);
    add("line-joules", "Joules spent by the devices" + (timeline.accuracy.x.length ? "" : by), timeline.joules.x, [{ label: "joules", y: timeline.joules.y }]);
    const several = population.series.length > 1; // the sum would flatten the cells' lines: the text states it
    const here = several ? population.series.slice(1) : population.series;
    add("line-population", population.title, population.time, here);
  };
  const devices = () => { // the devices that pass the filter, to choose from
    const { run, only } = replay, kept = run.devices.map((id, d) => [id, d]).filter(([, d]) => only.class === null || run.class_of[d] === only.class);
    get("device").replaceChildren(new Option("none chosen", ""), ...kept.map(([id, d]) => new Option(`${id} ${run.classes[run.class_of[d]]}`, d)));
  };
  const filter = () => {
    const value = (id) => (get(id).value === "" ? null : +get(id).value);
    replay.only = { cell: value("only-cell"), class: value("only-class") };
    devices();
    legend(); strip(); lines();
    select(replay.selected !== null && (replay.only.class === null || replay.run.class_of[replay.selected] === replay.only.class) ? replay.selected : null);
    for (const table of document.querySelectorAll('table[id^="table-sessions"]')) {
      if (table.rows[0].cells[0].textContent !== "cell") continue;
      for (const row of table.tBodies[0].rows) row.hidden = replay.only.cell !== null && row.cells[0].textContent !== String(replay.only.cell);
    }
  };
  const next = (step) => { // the next device that is shown, from the chosen one
    const n = replay.count, from = replay.selected ?? (step > 0 ? -1 : n);
    for (let k = 1; k <= n; k++) { const d = (((from + k * step) % n) + n) % n; if (replay.shown(d)) return select(d); }
  };
  const choose = async (number) => {
    play(false);
    const run = data.replays[number];
    edgefl.span = run.simulated_s; edgefl.clock = run.clock;
    replay = edgefl.replay = await edgefl.Replay.load(run);
    deviceLine = new edgefl.DeviceLine(replay);
    const modes = ["cell", "session", ...(run.classes.length > 1 ? ["class"] : []), ...(replay.frames.battery ? ["battery"] : [])];
    const kept = modes.includes(get("colour").value) ? get("colour").value : run.cells > 1 ? "cell" : "session";
    get("colour").replaceChildren(...modes.map((mode) => new Option("by " + mode, mode)));
    get("colour").value = replay.mode = kept;
    devices();
    const cells = replay.cells();
    get("which-cell").hidden = cells.length < 2;
    get("only-cell").replaceChildren(new Option("all", ""), ...cells.slice(0, 500).map((cell) => new Option(cell, cell)));
    get("which-class").hidden = run.classes.length < 2;
    get("only-class").replaceChildren(new Option("all", ""), ...run.classes.map((name, i) => new Option(name || "none", i)));
    const speeds = [20, 60, 240, ...(run.simulated_s > 4 && run.simulated_s < 3600 ? [run.simulated_s] : [])];
    get("speed").replaceChildren(...speeds.map((s) => new Option(s === run.simulated_s && ![20, 60, 240].includes(s) ? "real time" : `${s} s`, s)));
    get("speed").value = 60;
    get("replay-notes").replaceChildren(...run.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    get("trails").parentElement.hidden = !replay.trails;
    deviceLine.open(null);
    legend(); strip(); lines(); show(0);
  };

  data.replays.forEach((run, i) => get("run").append(new Option(run.label, i)));
  get("which-run").hidden = data.replays.length < 2;
  get("run").onchange = () => choose(+get("run").value);
  get("colour").onchange = () => { replay.mode = get("colour").value; legend(); show(t); };
  get("device").onchange = () => select(get("device").value === "" ? null : +get("device").value);
  get("only-cell").onchange = get("only-class").onchange = filter;
  get("options").open = innerWidth > 760;
  get("links").onchange = get("trails").onchange = () => show(t);
  get("play").onclick = () => play(!playing);
  slider.oninput = () => { play(false); show((span() * slider.value) / 10000); };
  get("map").onclick = (event) => select(replay.nearest(event.offsetX, event.offsetY));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event, step = (event.shiftKey ? 0.1 : 0.01) * span();
    if (event.key === "Escape") return select(null);
    if (/SELECT|TEXTAREA/.test(target.tagName)) return;
    const onSlider = target === slider, button = /BUTTON|SUMMARY|A/.test(target.tagName) || target.type === "checkbox";
    const act = { " ": button ? null : () => play(!playing), ArrowLeft: () => show(t - step), ArrowRight: () => show(t + step),
      Home: () => show(0), End: () => show(span()), n: () => next(1), p: () => next(-1) }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const inReplay = onSlider || target === document.body || get("replay").contains(target);
    const scrolls = target.classList?.contains("scroll") || target.tagName === "PRE";
    if (act && inReplay && !scrolls && (!/Home|End/.test(event.key) || target !== document.body)) {
      event.preventDefault();
      if (event.key.startsWith("Arrow")) play(false);
      act();
    }
  });
  let waiting;
  const again = () => {
    if (!replay) return; // still being unpacked; it will have the new size
    edgefl.plots.forEach(({ plot, into, height }) => plot.setSize({ width: Math.max(220, into.clientWidth), height }));
    replay.world.resize(); strip(); legend(); show(t);
  };
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 80); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { edgefl.cssKnown = {}; again(); });
  edgefl.state = () => ({ t, playing, drawn: replay.drawn, selected: replay.selected, frame: replay.frame, present: replay.present,
    places: [...replay.px], ready: true, errors: edgefl.errors });
  edgefl.run = (number) => choose(number);
  await choose(0);
  document.body.dataset.ready = "true";
})();
