// The map: cells, sites and areas drawn once, devices and links at a time. Shapes show the same as colours.
edgefl.SHAPES = ["●", "■", "▲", "◆", "▼", "✚", "⬟"];

edgefl.shape = (c, kind, x, y, r) => {
  // adds to the current path
  const points = {
    1: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]], 2: [[0, -1.1], [1.05, 0.8], [-1.05, 0.8]],
    3: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]], 4: [[0, 1.1], [1.05, -0.8], [-1.05, -0.8]],
    5: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1],
      [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
    6: [[0, -1.1], [1.05, -0.34], [0.65, 0.9], [-0.65, 0.9], [-1.05, -0.34]],
  }[kind];
  if (!points) { c.moveTo(x + r, y); c.arc(x, y, r, 0, 2 * Math.PI); return; }
  points.forEach(([dx, dy], i) => (i ? c.lineTo(x + r * dx, y + r * dy) : c.moveTo(x + r * dx, y + r * dy)));
  c.closePath();
};

edgefl.stamp = (look, colour, r, ring) => { // a shape drawn once, to be copied many times; look null: hollow
  const key = [look, colour, r, ring].join(), ratio = Math.min(2, devicePixelRatio || 1);
  return (edgefl.cssKnown["stamp " + key] ??= (() => {
    const half = Math.ceil(1.3 * r + 4), canvas = new OffscreenCanvas(2 * half * ratio, 2 * half * ratio);
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.beginPath();
    edgefl.shape(c, ring || look === null ? 0 : look, half, half, r);
    c.lineWidth = ring ? 1.2 : 1.5;
    if (ring) { c.strokeStyle = colour; c.stroke(); }
    else if (look === null) { c.fillStyle = edgefl.css("--paper"); c.strokeStyle = colour; c.fill(); c.stroke(); }
    else { c.fillStyle = colour; c.fill(); }
    return { canvas: canvas.transferToImageBitmap(), half };
  })());
};

edgefl.World = class {
  constructor(canvas, replay, frames) {
    Object.assign(this, { canvas, replay, frames });
    this.siteOf = replay.panels.flatMap((bearings, site) => Array(Math.max(1, bearings.length)).fill(site));
    this.ground = document.createElement("canvas");
    this.box = this.fitted();
    const [x0, y0, x1, y1] = this.box; // as wide as the world is, within what a screen can show
    canvas.style.aspectRatio = Math.min(2.4, Math.max(0.95, (x1 - x0) / (y1 - y0))).toFixed(3);
    this.resize();
  }
  fitted() { // [left, low, right, high]: the devices and the sites that serve them; the whole world if this is most of it
    const { replay, frames } = this, { placed } = replay;
    const around = (points) => points.reduce((b, [x, y]) => [Math.min(b[0], x), Math.min(b[1], y), Math.max(b[2], x), Math.max(b[3], y)], [Infinity, Infinity, -Infinity, -Infinity]);
    const r = replay.shape === "hexagons" ? replay.isd_m / Math.sqrt(3) : replay.shape === "disc" ? replay.radius_m : 0;
    let whole = around(replay.sites.flatMap(([x, y]) => [[x - r, y - r], [x + r, y + r]]));
    let box = whole;
    if (placed) {
      const used = new Set(frames.cell), b = [Infinity, Infinity, -Infinity, -Infinity];
      for (let i = 0; i < frames.x_m.length; i++) {
        const x = frames.x_m[i], y = frames.y_m[i];
        if (x < b[0]) b[0] = x;
        if (x > b[2]) b[2] = x;
        if (y < b[1]) b[1] = y;
        if (y > b[3]) b[3] = y;
      }
      const serving = [...used].filter((cell) => cell >= 0).map((cell) => this.site(cell));
      box = around([[b[0], b[1]], [b[2], b[3]], ...serving].filter(([x]) => Number.isFinite(x)));
      if (!Number.isFinite(box[0])) box = whole;
      const size = (v) => Math.max(0, v[2] - v[0]) * Math.max(0, v[3] - v[1]);
      if (size(box) > 0.5 * size(whole)) box = around([[box[0], box[1]], [box[2], box[3]], [whole[0], whole[1]], [whole[2], whole[3]]]);
    }
    const pad = Math.max(10, 0.04 * Math.max(box[2] - box[0], box[3] - box[1])), least = 0.2 * Math.max(box[2] - box[0], box[3] - box[1]);
    const widen = (low, high) => { const more = Math.max(0, least - (high - low)) / 2 + pad; return [low - more, high + more]; };
    const [left, right] = widen(box[0], box[2]), [low, high] = widen(box[1], box[3]);
    return [left, low, right, high];
  }
  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.width = this.canvas.clientWidth || 300;
    this.height = this.canvas.clientHeight || 280;
    for (const canvas of [this.canvas, this.ground]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    const [x0, y0, x1, y1] = this.box, margin = 8;
    this.scale = Math.min((this.width - 2 * margin) / (x1 - x0 || 1), (this.height - 2 * margin) / (y1 - y0 || 1));
    this.left = this.width / 2 - (this.scale * (x0 + x1)) / 2;
    this.top = this.height / 2 + (this.scale * (y0 + y1)) / 2;
    this.drawGround();
  }
  x(m) { return this.left + this.scale * m; }
  y(m) { return this.top - this.scale * m; }
  site(cell) { return this.replay.sites[this.siteOf[cell]] || this.replay.sites[0]; }
  nearestSite(cell, x, y) { // in a world that repeats itself, the nearest image of the site
    const [sx, sy] = this.site(cell);
    let best = [sx, sy], least = Infinity;
    for (const [dx, dy] of this.replay.images) {
      const away = Math.hypot(sx + dx - x, sy + dy - y);
      if (away < least) { least = away; best = [sx + dx, sy + dy]; }
    }
    return best;
  }
  drawGround() {
    const c = this.ground.getContext("2d"), { replay } = this;
    const ink = edgefl.css("--soft"), line = edgefl.css("--line");
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px system-ui";
    c.textAlign = "center";
    const named = [];
    for (const area of replay.areas) {
      c.beginPath();
      for (const ring of area.points || []) {
        ring.forEach(([x, y], i) => (i ? c.lineTo(this.x(x), this.y(y)) : c.moveTo(this.x(x), this.y(y))));
        c.closePath();
      }
      if (!area.points) c.arc(this.x(area.centre[0]), this.y(area.centre[1]), this.scale * area.radius, 0, 2 * Math.PI);
      c.fillStyle = edgefl.css("--area"); c.fill("evenodd");
      const corners = area.points ? area.points.flat() : [[area.centre[0], area.centre[1] + area.radius]];
      const xs = corners.map((p) => this.x(p[0])), ys = corners.map((p) => this.y(p[1]));
      const left = Math.max(0, Math.min(...xs)), right = Math.min(this.width, Math.max(...xs)), half = c.measureText(area.name).width / 2 + 4;
      if (left > right) continue; // the area is beside the map
      const middle = Math.max(half, Math.min(this.width - half, (left + right) / 2)); // the whole name is on the map
      named.push([area.name, middle, Math.max(14, Math.min(...ys) - 5)]);
    }
    c.strokeStyle = edgefl.css("--street"); c.lineCap = "round"; c.lineJoin = "round";
    c.lineWidth = Math.min(7, Math.max(1.5, 6 * this.scale)); // some 6 m
    for (const street of replay.streets) {
      c.beginPath();
      street.forEach(([x, y], i) => (i ? c.lineTo(this.x(x), this.y(y)) : c.moveTo(this.x(x), this.y(y))));
      c.stroke();
    }
    c.lineCap = "butt"; c.lineJoin = "miter"; c.fillStyle = ink;
    for (const [name, x, y] of named) c.fillText(name, x, y);
    c.strokeStyle = line; c.lineWidth = 1.5;
    if (replay.shape === "disc") {
      c.beginPath(); c.arc(this.x(0), this.y(0), this.scale * replay.radius_m, 0, 2 * Math.PI); c.stroke();
    }
    replay.sites.forEach(([sx, sy], site) => {
      if (replay.shape === "hexagons") {
        c.beginPath();
        for (let k = 0; k < 6; k++) {
          const a = ((30 + 60 * k) * Math.PI) / 180, r = replay.isd_m / Math.sqrt(3);
          c[k ? "lineTo" : "moveTo"](this.x(sx + r * Math.cos(a)), this.y(sy + r * Math.sin(a)));
        }
        c.closePath(); c.stroke();
      }
      const x = this.x(sx), y = this.y(sy);
      const panels = replay.panels[site], first = this.siteOf.indexOf(site);
      if (panels.length) { // in hexagons the edges of sectors, elsewhere the directions that panels face
        const turn = replay.shape === "open" ? 0 : 180 / panels.length;
        c.beginPath(); c.fillStyle = ink;
        panels.forEach((bearing, k) => {
          const a = ((bearing + turn) * Math.PI) / 180, r = turn ? 42 : 30, middle = (bearing * Math.PI) / 180, at = turn ? 24 : 38;
          c.moveTo(x, y); c.lineTo(x + r * Math.cos(a), y - r * Math.sin(a));
          c.fillText(String(first + k), x + at * Math.cos(middle), y - at * Math.sin(middle) + 4);
        });
        c.stroke();
      }
      // a mast: two legs and two waves
      c.strokeStyle = edgefl.css("--ink"); c.lineWidth = 1.6;
      c.beginPath();
      c.moveTo(x - 5, y + 8); c.lineTo(x, y - 6); c.lineTo(x + 5, y + 8); c.moveTo(x - 3, y + 3); c.lineTo(x + 3, y + 3);
      c.moveTo(x + 3.5, y - 9.5); c.arc(x, y - 6, 5, -0.8, 0.8); c.moveTo(x - 3.5, y - 2.5); c.arc(x, y - 6, 5, 2.34, 3.94);
      c.stroke();
      c.strokeStyle = line; c.lineWidth = 1.5;
      if (replay.sites.length > 1 && !panels.length) { c.fillStyle = ink; c.fillText(String(first), x, y + 21); }
    });
    this.drawScale(c, ink);
  }
  drawScale(c, ink) {
    const target = (this.width * 0.18) / this.scale, power = 10 ** Math.floor(Math.log10(target));
    const metres = [5, 2, 1].map((n) => n * power).find((n) => n <= target) || power;
    const x = 14, y = this.height - 12;
    c.strokeStyle = ink; c.fillStyle = ink; c.lineWidth = 2;
    c.beginPath(); c.moveTo(x, y); c.lineTo(x + metres * this.scale, y); c.stroke();
    c.textAlign = "left";
    c.fillText(metres >= 1000 ? metres / 1000 + " km" : metres + " m", x, y - 6);
  }
};
