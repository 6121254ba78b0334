// Elements, text and numbers. All text of a record goes through `inert` and becomes a text node, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** The text without characters that would turn, hide or move the text around it. */
function inert(text) {
  return String(text ?? "").replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "\ufffd");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : inert(value));
  }
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(inert(child)));
  }
  return element;
}

/** An element of HTML. */
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
/** An element of SVG. */
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** An id, which a narrow column breaks behind a slash and never inside a word. */
const breakable = (id) => inert(id).split(/(?<=\/)/).flatMap((part) => [part, el("wbr")]).slice(0, -1);

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const isTime = (unit) => unit === "ns" || unit === "displaced-ns";

/** Four significant digits, without an exponent. */
function digits(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.95) return value.toFixed(0);
  const decimals = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(size))));
  return value.toFixed(decimals);
}

function scaled(value, steps) {
  const size = Math.abs(value);
  const step = steps.findLast(([divisor]) => size >= divisor * 0.99995) ?? steps[0];
  return { divisor: step[0], unit: step[1] };
}

const TIMES = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const COUNTS = [[1, ""], [1e6, "M"], [1e9, "G"]];
const stepOf = (value, unit) => scaled(value, isTime(unit) ? TIMES : COUNTS);

/** A value in a unit that a record knows: a duration, a rate, a count. */
function amount(value, unit) {
  if (!isNumber(value)) return "–";
  const step = stepOf(value, unit);
  const tail = isTime(unit) ? step.unit : step.unit + (unit === data.unit ? "" : unit);
  return `${digits(value / step.divisor)} ${tail}`.trim();
}

/** The ends of an interval, in the unit in which its middle is short. */
function ends([estimate, low, high], unit) {
  const { divisor } = stepOf(estimate, unit);
  return `[${digits(low / divisor)}, ${digits(high / divisor)}]`;
}

function size(bytes) {
  const steps = [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"]];
  const { divisor, unit } = bytes < 10000 && bytes % 1024 > 0 ? { divisor: 1, unit: "B" } : scaled(bytes, steps);
  return `${Number((bytes / divisor).toPrecision(4))} ${unit}`;
}

const times = (ratio) => (isNumber(ratio) ? `${ratio < 999.5 ? ratio.toPrecision(3) : ratio.toFixed(0)}×` : "");
function percent(share) {
  if (!isNumber(share)) return "–";
  const text = Math.abs(100 * share).toFixed(Math.abs(share) < 0.1 ? 2 : 1);
  return `${Number(text) === 0 ? "" : share > 0 ? "+" : "−"}${text} %`;
}

const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;
const moment = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");

function lasting(seconds) {
  if (seconds < 90) return `${seconds.toFixed(0)} s`;
  return seconds < 5400 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** Lines of cells as RFC 4180 has them; a text that a spreadsheet would compute is quoted as text. */
function csv(lines) {
  const cell = (value) => {
    const text = isNumber(value) ? String(value) : String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
}

/** Hands the browser a file to keep. */
function keep(name, kind, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  const link = el("a", { href: address, download: `${data.run}-${name}`.replace(/[^\w.-]+/g, "-") });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

const button = (text, onclick, attributes) => el("button", { type: "button", onclick, ...attributes }, text);
const saver = (text, name, kind, make) => button(text, () => keep(name, kind, make()), { class: "save" });

/** A table with its caption for readers who hear it. `rows` are lists of cells, `numbers` the columns of numbers. */
function plainTable(caption, head, rows, numbers = []) {
  const kind = (at) => (numbers.includes(at) ? { class: "number" } : {});
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "plain" },
      el("caption", { class: "heard" }, caption),
      el("thead", {}, el("tr", {}, head.map((cell, at) => el("th", { scope: "col", ...kind(at) }, cell)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) =>
        at === 0 ? el("th", { scope: "row", ...kind(at) }, cell) : el("td", kind(at), cell)))))));
}
