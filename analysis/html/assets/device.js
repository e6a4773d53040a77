// A device's own time line: its stages, cells and handovers as bars, its bits and joules as a table.
edgefl.DeviceLine = class {
  constructor(replay) {
    this.replay = replay;
    this.panel = document.getElementById("device-panel");
    this.canvas = document.getElementById("device-line");
    this.choice = document.getElementById("window");
    this.choice.onchange = () => this.draw();
    document.getElementById("device-csv").onclick = () => this.csv();
  }
  open(device) {
    this.device = device;
    this.panel.hidden = device === null;
    if (device === null) return;
    const { run, rows } = this.replay, name = run.classes[run.class_of[device]];
    const [from, to] = this.replay.range(device);
    let joules = 0, bits = 0, done = 0;
    for (let i = from; i < to; i++) {
      joules += rows.energy_j[i];
      bits += rows.downlink_bits[i] + rows.uplink_bits[i];
      done += run.outcomes[rows.outcome[i]] === "completed";
    }
    const handovers = this.replay.handoversOf(device).length;
    document.getElementById("device-title").textContent = `Device ${run.devices[device]}${name ? ` (${name})` : ""}`;
    document.getElementById("device-about").textContent = `${to - from} rounds, ${done} completed; `
      + `${edgefl.amount(bits / 1e6)}\u00a0Mbit and ${edgefl.joules(joules)} in them; ${handovers} handover${handovers === 1 ? "" : "s"}.`;
    this.first = null;
    this.draw();
  }
  columns() {
    return ["session", "round", "cell", "start_s", "downlink_start_s", "downlink_end_s", "compute_start_s",
      "compute_end_s", "uplink_start_s", "uplink_end_s", "distance_m", "downlink_bits", "uplink_bits", "energy_rx_j",
      "energy_compute_j", "energy_tx_j", "energy_tail_j", "energy_j"];
  }
  csv() {
    const { run, rows } = this.replay, [from, to] = this.replay.range(this.device), names = this.columns();
    const table = [["device", ...names, "outcome"]];
    for (let i = from; i < to; i++) {
      table.push([run.devices[this.device], ...names.map((name) => +rows[name][i].toPrecision(10)), run.outcomes[rows.outcome[i]]]);
    }
    edgefl.download(`device-${run.devices[this.device]}.csv`, edgefl.csv(table));
  }
  draw() {
    if (this.device === null || this.device === undefined) return;
    const { replay } = this, { rows, run } = replay, [from, to] = replay.range(this.device);
    const share = +this.choice.value, span = run.simulated_s * share;
    const begin = Math.min(Math.max(0, replay.t - span / 2), run.simulated_s - span);
    const ratio = Math.min(2, devicePixelRatio || 1), w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    this.canvas.width = w * ratio; this.canvas.height = h * ratio;
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "12px system-ui";
    const left = 66, x = (t) => left + ((t - begin) / span) * (w - left - 8);
    const lanes = ["downlink", "compute", "uplink", "cell"], high = (h - 24) / lanes.length;
    c.textBaseline = "middle";
    lanes.forEach((lane, i) => {
      c.fillStyle = edgefl.css("--soft"); c.fillText(lane, 0, (i + 0.5) * high);
      c.fillStyle = edgefl.css("--line"); c.fillRect(left, (i + 1) * high - 1, w - left - 8, 1);
    });
    c.save();
    c.beginPath(); c.rect(left, 0, w - left - 8, h); c.clip();
    const bar = (lane, t0, t1, colour, text) => {
      if (!(t1 >= begin && t0 <= begin + span)) return;
      const a = x(Math.max(t0, begin)), b = Math.max(a + 1, x(Math.min(t1, begin + span)));
      c.fillStyle = colour; c.fillRect(a, lane * high + 4, b - a, high - 9);
      if (text && b - a > 14) { c.fillStyle = edgefl.css("--paper"); c.fillText(text, a + 4, (lane + 0.5) * high); }
    };
    ["downlink", "compute", "uplink"].forEach((stage, lane) => {
      const t0 = rows[stage + "_start_s"], t1 = rows[stage + "_end_s"], colour = edgefl.colour([0, 2, 1][lane]);
      for (let i = from; i < to; i++) bar(lane, t0[i], t1[i], colour);
    });
    for (const [t0, t1, cell] of replay.cellsOf(this.device)) bar(3, t0, t1, edgefl.colour(cell), String(cell));
    c.strokeStyle = edgefl.css("--mark");
    c.setLineDash([3, 3]);
    c.beginPath();
    for (const t of replay.handoversOf(this.device)) { c.moveTo(x(t), 0); c.lineTo(x(t), h - 22); }
    c.stroke();
    c.setLineDash([]); c.lineWidth = 2;
    c.beginPath(); c.moveTo(x(replay.t), 0); c.lineTo(x(replay.t), h - 22); c.stroke();
    c.restore();
    c.fillStyle = edgefl.css("--soft");
    c.fillText(edgefl.time(begin), left, h - 9);
    c.textAlign = "right"; c.fillText(edgefl.time(begin + span), w - 8, h - 9); c.textAlign = "left";
    this.table(from, to);
  }
  table(from, to) {
    const { replay } = this, { rows, run } = replay, most = 60, at = replay.rowAt(this.device, replay.t);
    const first = Math.max(from, Math.min(at - most / 2, to - most)), last = Math.min(to, first + most);
    const table = document.getElementById("device-table");
    if (this.first !== first) {
      this.first = first;
      const heads = ["session · round", "cell", "begins", "downlink", "compute", "uplink", "bits down", "bits up", "joules", "outcome"];
      const took = (stage, i) => {
        const s = rows[stage + "_end_s"][i] - rows[stage + "_start_s"][i];
        return Number.isNaN(s) ? "–" : s < 1 ? edgefl.amount(1000 * s) + "\u00a0ms" : edgefl.amount(s) + "\u00a0s";
      };
      const body = document.createElement("tbody");
      for (let i = first; i < last; i++) {
        const cells = [`${rows.session[i]} · ${rows.round[i]}`, rows.cell[i], edgefl.time(rows.start_s[i]), took("downlink", i),
          took("compute", i), took("uplink", i), rows.downlink_bits[i].toLocaleString("en"), rows.uplink_bits[i].toLocaleString("en"),
          edgefl.joules(rows.energy_j[i]), run.outcomes[rows.outcome[i]]];
        const line = body.insertRow();
        line.dataset.row = i;
        for (const cell of cells) line.insertCell().textContent = cell;
      }
      const head = document.createElement("thead"), line = head.insertRow();
      for (const name of heads) { const th = document.createElement("th"); th.textContent = name; th.scope = "col"; line.append(th); }
      const caption = document.createElement("caption");
      caption.textContent = to - from > most ? `Rounds ${first - from + 1} to ${last - from} of ${to - from}, those around now; the CSV has all`
        : "All rounds of this device";
      table.replaceChildren(caption, head, body);
    }
    for (const line of table.querySelectorAll("tr.now")) line.classList.remove("now");
    table.querySelector(`tr[data-row="${at}"]`)?.classList.add("now");
  }
};
