// Small drawings, as SVG: they take the page's colours, print sharply and can be kept as files.

const between = (value, low, high) => Math.min(high, Math.max(low, value));

/** Where a value lies in a shape, from 0 to 1. */
function placeIn(shape, value) {
  const share = shape.logarithmic
    ? Math.log(value / shape.low) / Math.log(shape.high / shape.low)
    : (value - shape.low) / (shape.high - shape.low);
  return between(share, 0, 1);
}

function shapeWords(one) {
  const { low, high, beyond, greatest } = one.shape;
  const tail = beyond > 0 ? `, ${beyond} beyond, up to ${amount(greatest, data.unit)}` : "";
  return `samples from ${amount(low, data.unit)} to ${amount(high, data.unit)}${tail}`;
}

/** The samples of a case as bars, the next run's interval behind them, the quiet figure as a line. */
function shapeDrawing(one, width, height, axis) {
  const { shape, figure: [figure, low, high], typical } = one;
  const highest = Math.max(...shape.bars, 1), step = width / shape.bars.length, base = height - 1;
  const x = (value) => (placeIn(shape, value) * width).toFixed(1);
  const inside = (value) => isNumber(value) && value >= shape.low && value <= shape.high;
  // All bars are one path, because a page has thousands of them. A square root shows a few samples beside many.
  const bar = (count, at) => {
    const tall = count > 0 ? Math.max(1.5, Math.sqrt(count / highest) * (height - 3)) : 0;
    return tall > 0 ? `M${(at * step).toFixed(1)} ${base}v${(-tall).toFixed(1)}h${Math.max(1, step - 0.6).toFixed(1)}V${base}z` : "";
  };
  const [from, to] = [x(low), x(high)];
  const room = axis ? 20 : 0;
  const drawing = svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height + room}`, role: "img", "aria-label": shapeWords(one), width, height: height + room },
    high > shape.low && low < shape.high && svg("rect", { class: "next", x: from, y: 0, width: Math.max(1, to - from).toFixed(1), height: base }),
    svg("path", { class: "bar", d: shape.bars.map(bar).join("") }),
    svg("line", { class: "ground", x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5 }),
    inside(typical[0]) && svg("line", { class: "typical", x1: x(typical[0]), x2: x(typical[0]), y1: 0, y2: base }),
    inside(figure) && svg("line", { class: "quiet", x1: x(figure), x2: x(figure), y1: 0, y2: base }));
  if (axis) {
    const word = (value, anchor) => svg("text", { x: x(value), y: height + 15, "text-anchor": anchor }, amount(value, data.unit));
    drawing.append(word(shape.low, "start"), word(shape.high, "end"));
  }
  return drawing;
}

/** The executions of a case over the time of the run: the lower quartile filled, the median as a ring. */
function executionDrawing(one, width, height) {
  const all = one.executions, last = Math.max(...all.map(([at]) => at), 1);
  const values = all.flatMap(([, low, median]) => [low, median]).filter(isNumber);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const spare = Math.max((most - least) * 0.12, least * 0.01);
  const y = (value) => (8 + (height - 16) * (1 - (value - least + spare) / (most - least + 2 * spare))).toFixed(1);
  const x = (at) => (70 + (width - 80) * (at / last)).toFixed(1);
  const level = (value) => [
    svg("line", { class: "ground", x1: 66, x2: width, y1: y(value), y2: y(value) }),
    svg("text", { x: 62, y: Number(y(value)) + 4, "text-anchor": "end" }, amount(value, data.unit))];
  const far = Math.abs(y(least) - y(most)) > 14;
  return svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height + 18}`, width, height: height + 18, role: "img",
    "aria-label": `${counted(all.length, "execution", "executions")}, lower quartiles and medians from ${amount(least, data.unit)} to ${amount(most, data.unit)}` },
    level(least), far && level(most),
    all.map(([at, low, median]) => [
      svg("line", { class: "reach", x1: x(at), x2: x(at), y1: y(low), y2: y(median) }),
      svg("circle", { class: "ring", cx: x(at), cy: y(median), r: 3 }),
      svg("circle", { class: "point", cx: x(at), cy: y(low), r: 3.2 })]),
    svg("text", { x: 70, y: height + 14 }, "0 s"),
    svg("text", { x: width - 4, y: height + 14, "text-anchor": "end" }, `${lasting(last)} into the run`));
}

/** A point on a line from an eighth to eight times. */
function ratioDrawing(ratio) {
  const place = 30 + 27 * between(Math.log2(ratio) / 3, -1, 1);
  return svg("svg", { class: "drawing ratio", viewBox: "0 0 60 10", width: 60, height: 10, "aria-hidden": "true" },
    svg("line", { class: "ground", x1: 2, x2: 58, y1: 5, y2: 5 }),
    svg("line", { class: "ground", x1: 30, x2: 30, y1: 1, y2: 9 }),
    svg("line", { class: "reach", x1: 30, x2: place.toFixed(1), y1: 5, y2: 5 }),
    svg("circle", { class: "point", cx: place.toFixed(1), cy: 5, r: 3 }));
}

const TAKEN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "text-anchor"];

/** A drawing as a file of its own, with the colours that it has on the page. */
function asFile(drawing) {
  const copy = drawing.cloneNode(true);
  const [from, to] = [drawing, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of TAKEN) to[at].setAttribute(name, style.getPropertyValue(name));
    to[at].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG);
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}
