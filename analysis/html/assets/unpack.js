// Reads what analysis/html/replay.py packed: whole multiples of a unit, differences, byte by byte, deflated.
const edgefl = { data: JSON.parse(document.getElementById("data").textContent), errors: [] };
window.edgefl = edgefl;
addEventListener("error", (event) => edgefl.errors.push(event.message));
addEventListener("unhandledrejection", (event) => edgefl.errors.push(String(event.reason)));

edgefl.unpack = async (packed) => {
  const text = atob(packed.data), raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = {};
  let at = 0;
  for (const head of packed.columns) {
    const count = head.shape.reduce((a, b) => a * b, 1), width = head.bytes;
    const row = head.shape[head.shape.length - 1], missing = width === 2 ? -32768 : -2147483648;
    const values = new (width === 2 ? Float32Array : Float64Array)(count);
    let sum = 0;
    for (let i = 0; i < count; i++) {
      if (i % row === 0) sum = 0;
      let step = bytes[at + i] | (bytes[at + count + i] << 8);
      if (width === 4) step |= (bytes[at + 2 * count + i] << 16) | (bytes[at + 3 * count + i] << 24);
      sum = width === 2 ? ((sum + step) << 16) >> 16 : (sum + step) | 0;
      values[i] = sum === missing ? NaN : sum * head.unit;
    }
    found[head.name] = values;
    at += count * width;
  }
  return found;
};

edgefl.css = (name) => (edgefl.cssKnown[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim());
edgefl.cssKnown = {}; // emptied when the page changes between light and dark
edgefl.colour = (number) => edgefl.css("--c" + (number % 7));
edgefl.pattern = (number) => (number + Math.floor(number / 7)) % 7; // a shape or dash: 49 numbers look different

edgefl.timeUnit = (span) => (span >= 7200 ? ["h", 3600] : span >= 600 ? ["min", 60] : ["s", 1]); // of an axis
edgefl.ofDay = (s, { begin_hour, day_s }, seconds) => { // as clocks show it: 8:05, or 8:05:30
  const two = (n) => String(n).padStart(2, "0"), whole = Math.round((begin_hour + (24 * s) / day_s) * (seconds ? 3600 : 60)) * (seconds ? 1 : 60);
  return `${Math.floor(whole / 3600) % 24}:${two(Math.floor(whole / 60) % 60)}${seconds ? ":" + two(whole % 60) : ""}`;
};
edgefl.time = (s) => {
  if (edgefl.clock) {
    const day = Math.floor((edgefl.clock.begin_hour + (24 * s) / edgefl.clock.day_s) / 24);
    return (day ? `day\u00a0${day + 1}, ` : "") + edgefl.ofDay(s, edgefl.clock, true);
  }
  const span = edgefl.span || s;
  if (span < 0.02) return (1000 * s).toPrecision(4) + "\u00a0ms";
  if (span < 200) return s.toFixed(span < 20 ? 3 : 1) + "\u00a0s";
  const whole = Math.round(s), two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}\u00a0h`;
};
edgefl.amount = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3)));
edgefl.joules = (j) => (Math.abs(j) >= 1000 ? edgefl.amount(j / 1000) + "\u00a0kJ"
  : Math.abs(j) >= 1 || j === 0 ? edgefl.amount(j) + "\u00a0J" : edgefl.amount(1000 * j) + "\u00a0mJ");

edgefl.download = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
edgefl.csv = (rows) => rows.map((row) => row.map((cell) => {
  const text = cell === null || cell === undefined || Number.isNaN(cell) ? "" : String(cell).replaceAll("\u00a0", " ");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(",")).join("\n") + "\n";
