// One run on a time slider: where devices are, what each does, and what has been learned and spent by then.
edgefl.Replay = class {
  static async load(run) {
    const [frames, rows, events] = await Promise.all([run.frames, run.rows, run.events].map(edgefl.unpack));
    return new edgefl.Replay(run, frames, rows, events);
  }
  constructor(run, frames, rows, events) {
    Object.assign(this, { run, frames, rows, events, t: 0, selected: null, drawn: 0, mode: "cell", only: { cell: null, class: null } });
    const count = run.devices.length;
    this.count = count;
    this.times = frames.time_s;
    this.offsets = new Int32Array(count + 1);
    for (const device of rows.device) this.offsets[device + 1]++;
    for (let d = 0; d < count; d++) this.offsets[d + 1] += this.offsets[d];
    this.px = new Float32Array(count); this.py = new Float32Array(count);
    this.cell = new Float32Array(count); this.doing = new Uint8Array(count); this.session = new Float32Array(count);
    this.handovers = [];
    const kind = run.event_names.indexOf("handover");
    for (let i = 0; i < events.time_s.length; i++) if (events.event[i] === kind) this.handovers.push(i);
    this.handoverTimes = Float64Array.from(this.handovers, (i) => events.time_s[i]);
    this.world = new edgefl.World(document.getElementById("map"), run, frames);
    this.trails = run.placed && count * this.times.length > count && count <= 300;
    this.jump = run.radius_m; // a device that jumps this far has come in on the other side
  }
  range(device) { return [this.offsets[device], this.offsets[device + 1]]; }
  static last(values, t, from, to) { // the last index in [from, to) whose value is at most t, or from - 1
    let low = from, high = to;
    while (low < high) { const middle = (low + high) >> 1; if (values[middle] <= t) low = middle + 1; else high = middle; }
    return low - 1;
  }
  rowAt(device, t) { return edgefl.Replay.last(this.rows.start_s, t, this.offsets[device], this.offsets[device + 1]); }
  handoversOf(device) { return this.handovers.filter((i) => this.events.device[i] === device).map((i) => this.events.time_s[i]); }
  cellsOf(device) { // [begin, end, cell] by the recorded positions, or by the rounds
    const found = [], add = (t0, t1, cell) => {
      const before = found[found.length - 1];
      if (before && before[2] === cell && before[1] >= t0 - 1e-9) before[1] = t1; else found.push([t0, t1, cell]);
    };
    if (this.run.placed) {
      const n = this.times.length;
      for (let i = 0; i < n; i++) {
        const cell = this.frames.cell[device * n + i];
        if (!Number.isNaN(cell)) add(this.times[i], i + 1 < n ? this.times[i + 1] : this.run.simulated_s, cell);
      }
    } else {
      const [from, to] = this.range(device);
      for (let i = from; i < to; i++) add(this.rows.start_s[i], i + 1 < to ? this.rows.start_s[i + 1] : this.run.simulated_s, this.rows.cell[i]);
    }
    return found;
  }
  place(t, window) { // fills px, py, cell, doing, session
    const { rows, frames, times, count } = this, n = times.length;
    const i = Math.max(0, edgefl.Replay.last(times, t, 0, n)), next = Math.min(n - 1, i + 1);
    const share = next > i ? Math.min(1, (t - times[i]) / (times[next] - times[i])) : 0;
    this.frame = i; this.present = this.outside = 0; this.busy = [0, 0, 0, 0];
    for (let d = 0; d < count; d++) {
      const row = this.rowAt(d, t), known = row >= this.offsets[d];
      this.session[d] = known ? rows.session[row] : NaN;
      this.doing[d] = 0;
      for (let r = row; r >= Math.max(this.offsets[d], row - 1); r--) {
        const over = (a, b) => a <= t && b >= t - window && (b > t || r === row || window > 0);
        if (over(rows.uplink_start_s[r], rows.uplink_end_s[r])) this.doing[d] = 3;
        else if (over(rows.compute_start_s[r], rows.compute_end_s[r])) this.doing[d] = 2;
        else if (over(rows.downlink_start_s[r], rows.downlink_end_s[r])) this.doing[d] = 1;
        if (this.doing[d]) break;
      }
      if (this.run.placed) {
        const a = d * n + i, b = d * n + next;
        let x = frames.x_m[a], y = frames.y_m[a];
        const dx = frames.x_m[b] - x, dy = frames.y_m[b] - y;
        if (Math.abs(dx) < this.jump && Math.abs(dy) < this.jump) { x += share * dx; y += share * dy; }
        this.px[d] = x; this.py[d] = y; this.cell[d] = frames.cell[a];
      } else if (known) {
        const site = this.world.site(rows.cell[row]), angle = 2.399963 * d;
        this.px[d] = site[0] + rows.distance_m[row] * Math.cos(angle);
        this.py[d] = site[1] + rows.distance_m[row] * Math.sin(angle);
        this.cell[d] = rows.cell[row];
      } else this.px[d] = this.py[d] = this.cell[d] = NaN;
      if (Number.isNaN(this.px[d]) || !this.shown(d)) continue;
      if (Number.isNaN(this.cell[d])) { this.outside++; this.session[d] = NaN; continue; }
      this.present++;
      this.busy[this.doing[d]]++;
    }
  }
  static ofOneCell(sessions) { return sessions.every(([, , cell]) => cell === sessions[0][2]); }
  sessions() { // [begin, number, cell] of each session of the chosen cell, or of all cells
    const { sessions } = this.run.timeline, { cell } = this.only;
    return cell === null || edgefl.Replay.ofOneCell(sessions) ? sessions : sessions.filter((one) => one[2] === cell);
  }
  shown(d) { // whether a device passes the filter
    const { cell, class: kind } = this.only;
    return (cell === null || this.cell[d] === cell) && (kind === null || this.run.class_of[d] === kind);
  }
  group(d) {
    if (this.mode === "class") return this.run.class_of[d];
    if (this.mode === "session") return this.session[d] - 1;
    if (this.mode === "battery") return 0;
    return this.cell[d];
  }
  draw(t, window) {
    this.t = t;
    this.place(t, window);
    const { world, count, frames } = this, c = world.canvas.getContext("2d"), n = this.times.length;
    c.clearRect(0, 0, world.width, world.height);
    c.drawImage(world.ground, 0, 0, world.width, world.height);
    const r = count <= 60 ? 6 : count <= 200 ? 4.5 : count <= 1000 ? 3 : 2;
    if (this.trails && document.getElementById("trails").checked) {
      c.strokeStyle = edgefl.css("--soft"); c.globalAlpha = 0.35; c.lineWidth = 1.5;
      c.beginPath();
      for (let d = 0; d < count; d++) {
        if (!this.shown(d)) continue;
        let pen = false, before = NaN, beforeY = NaN;
        for (let i = Math.max(0, this.frame - 14); i <= this.frame; i++) {
          const x = frames.x_m[d * n + i], y = frames.y_m[d * n + i];
          const near = Math.abs(x - before) < this.jump && Math.abs(y - beforeY) < this.jump;
          if (!Number.isNaN(x)) c[pen && near ? "lineTo" : "moveTo"](world.x(x), world.y(y));
          pen = !Number.isNaN(x); before = x; beforeY = y;
        }
        if (pen) c.lineTo(world.x(this.px[d]), world.y(this.py[d]));
      }
      c.stroke(); c.globalAlpha = 1;
    }
    if (document.getElementById("links").checked) this.links(c);
    const battery = this.mode === "battery", busy = edgefl.stamp(0, edgefl.css("--ink"), r + 2.5, true); // a ring: the device computes
    const stamps = {}, stamp = (look) => (stamps[look] ??= edgefl.stamp(edgefl.pattern(look), edgefl.colour(look), r));
    const filtered = this.only.cell !== null || this.only.class !== null;
    const hollow = edgefl.stamp(null, edgefl.css("--soft"), r);
    for (let d = 0; d < count; d++) {
      if (Number.isNaN(this.px[d])) continue;
      const key = this.group(d), x = world.x(this.px[d]), y = world.y(this.py[d]);
      const { canvas, half } = battery || !(key >= 0) ? hollow : stamp(key);
      if (filtered) c.globalAlpha = this.shown(d) ? 1 : 0.12;
      c.drawImage(canvas, x - half, y - half, 2 * half, 2 * half);
      if (this.doing[d] === 2) c.drawImage(busy.canvas, x - busy.half, y - busy.half, 2 * busy.half, 2 * busy.half);
      if (battery) this.level(c, d, r);
    }
    c.globalAlpha = 1;
    this.marks(c, Math.max(window, this.run.simulated_s / 80));
    if (this.selected !== null && !Number.isNaN(this.px[this.selected])) this.aim(c, world.x(this.px[this.selected]), world.y(this.py[this.selected]), r + 5);
    this.drawn++;
  }
  aim(c, x, y, r) { // marks the chosen device: the four corners of a frame, in ink, with a rim in the ground's colour
    for (const [colour, width] of [["--ground", 5], ["--ink", 2.2]]) {
      c.strokeStyle = edgefl.css(colour); c.lineWidth = width; c.lineCap = "round";
      c.beginPath();
      for (const [sx, sy] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
        c.moveTo(x + sx * r, y + sy * 0.35 * r); c.lineTo(x + sx * r, y + sy * r); c.lineTo(x + sx * 0.35 * r, y + sy * r);
      }
      c.stroke();
    }
    c.lineCap = "butt";
  }
  links(c) {
    for (const [doing, colour, dash] of [[1, 0, []], [3, 1, [5, 3]]]) {
      c.strokeStyle = edgefl.colour(colour); c.setLineDash(dash); c.lineWidth = this.count > 300 ? 1 : 1.3; c.globalAlpha = 0.8;
      for (let d = 0; d < this.count; d++) {
        if (this.doing[d] !== doing || !(this.cell[d] >= 0) || Number.isNaN(this.px[d]) || !this.shown(d)) continue;
        const [x, y] = this.world.nearestSite(this.cell[d], this.px[d], this.py[d]);
        c.beginPath(); // one path for each: a single path with many crossings is slow to fill
        c.moveTo(this.world.x(x), this.world.y(y)); c.lineTo(this.world.x(this.px[d]), this.world.y(this.py[d]));
        c.stroke();
      }
    }
    c.setLineDash([]); c.globalAlpha = 1;
  }
  level(c, d, r) { // the battery's charge, from the bottom up
    const { battery } = this.frames, level = battery ? battery[d * this.times.length + this.frame] : NaN;
    if (Number.isNaN(level)) return;
    const x = this.world.x(this.px[d]), y = this.world.y(this.py[d]), half = Math.acos(2 * level - 1);
    c.fillStyle = edgefl.colour(level < 0.2 ? 4 : level < 0.5 ? 1 : 2);
    c.beginPath(); c.arc(x, y, r, -Math.PI / 2 + half, 1.5 * Math.PI - half); c.fill();
  }
  marks(c, within) { // recent handovers: a dashed ring that widens, and a line towards the cell that was left
    const { events, world, t } = this;
    c.strokeStyle = edgefl.css("--mark"); c.lineWidth = 2; c.setLineDash([4, 3]);
    const latest = edgefl.Replay.last(this.handoverTimes, t, 0, this.handovers.length);
    for (let k = latest; k >= 0 && k > latest - 60; k--) { // the latest 60: more cannot be told apart
      const i = this.handovers[k], d = events.device[i], age = (t - events.time_s[i]) / within;
      if (age > 1) break;
      if (Number.isNaN(this.px[d]) || !this.shown(d)) continue;
      const x = world.x(this.px[d]), y = world.y(this.py[d]);
      c.globalAlpha = 1 - 0.7 * age;
      c.beginPath(); edgefl.shape(c, 0, x, y, 8 + 8 * age);
      if (events.from_cell[i] >= 0) {
        const [sx, sy] = world.nearestSite(events.from_cell[i], this.px[d], this.py[d]), ux = world.x(sx) - x, uy = world.y(sy) - y, l = Math.hypot(ux, uy) || 1;
        c.moveTo(x + (12 * ux) / l, y + (12 * uy) / l); c.lineTo(x + (26 * ux) / l, y + (26 * uy) / l);
      }
      c.stroke();
    }
    c.setLineDash([]); c.globalAlpha = 1;
  }
  nearest(x, y) {
    let best = null, least = 18;
    for (let d = 0; d < this.count; d++) {
      if (!this.shown(d)) continue;
      const away = Math.hypot(this.world.x(this.px[d]) - x, this.world.y(this.py[d]) - y);
      if (away < least) { least = away; best = d; }
    }
    return best;
  }
  cells() { // the cells that ever serve a device
    const known = new Set(this.run.placed ? this.frames.cell : this.rows.cell);
    return [...known].filter((cell) => cell >= 0).sort((a, b) => a - b);
  }
  legend() {
    const { run } = this;
    if (this.mode === "class") return run.classes.map((name, i) => [i, name || "all devices"]);
    if (this.mode === "battery") return [[2, "half full or more"], [1, "below half"], [4, "below a fifth"], [null, "on mains"]];
    const values = new Set(this.mode === "session" ? this.rows.session : this.run.placed ? this.frames.cell : this.rows.cell);
    const known = [...values].filter((v) => v >= 0).sort((a, b) => a - b).map((v) => [this.mode === "session" ? v - 1 : v, `${this.mode} ${v}`]);
    const shown = known.slice(0, 14);
    if (known.length > 14) shown.push([undefined, `… ${known.length} in all; looks repeat after 49`]);
    shown.push([null, this.mode === "session" ? "not in one yet" : "no cell"]);
    return shown;
  }
};
