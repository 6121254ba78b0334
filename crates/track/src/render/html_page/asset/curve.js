// Curves over a size or a number, by uPlot, each with the table of its points; and maps of the cores.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
const at = (curve, value) => (curve.bytes ? size(value) : String(value));
const unitOf = (curve, value) => (isTime(curve.unit) ? amount(value, "ns") : `${digits(value)} ${curve.unit}`.trim());

/** The curves of one chart, on one axis. */
function columnsOf(curves) {
  const places = [...new Set(curves.flatMap(({ points }) => points.map((point) => point.at)))].sort((a, b) => a - b);
  const known = curves.map(({ points }) => new Map(points.map((point) => [point.at, point.value])));
  const column = (map, end) => places.map((place) => map.get(place)?.[end] ?? null);
  return { places, known, series: known.flatMap((map) => ["estimate", "low", "high"].map((end) => column(map, end))) };
}

function seriesOf(curves, hidden) {
  return curves.flatMap((curve, number) => {
    const stroke = colour(`--s${number % 8}`), on = !hidden.has(number), dash = DASHES[curve.prefix === "" ? 1 : Math.floor(number / 8) % 4];
    const edge = { show: on, stroke: "transparent", points: { show: false } };
    return [
      { show: on, stroke, width: 2, dash, spanGaps: true, points: { show: true, size: 5, fill: stroke } },
      edge, edge];
  });
}

/** Levels as lines with their names: the caches that a curve found. */
function levelLines(curves, hidden) {
  return (plot) => {
    const { ctx } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillStyle = ctx.strokeStyle = colour("--dim");
    ctx.setLineDash([3, 4]);
    curves.forEach((curve, number) => {
      if (hidden.has(number)) return;
      for (const level of curve.levels.filter(({ name }) => name)) {
        const [x, end, y] = [plot.valToPos(level.first, "x", true), plot.valToPos(level.last, "x", true), plot.valToPos(level.latency.estimate, "y", true)];
        ctx.beginPath();
        ctx.moveTo(x, y);
        ctx.lineTo(end, y);
        ctx.stroke();
        ctx.fillText(inert(level.name).slice(0, 24), x, y - 7 * devicePixelRatio);
      }
    });
    ctx.restore();
  };
}

const axisStyle = () => ({ stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" });

function optionsOf(curves, columns, hidden, width, told) {
  const [first] = curves, values = columns.series.flat().filter((value) => value > 0);
  const steep = Math.max(...values) > 12 * Math.min(...values) && columns.series.flat().every((value) => value === null || value > 0);
  // Sizes by powers of two; those of the paper, 1000 to 8000 bytes, stand evenly.
  const wide = first.bytes && columns.places[0] > 0 && columns.places.some((place) => place % 1024 === 0);
  const axis = axisStyle();
  const far = columns.places.length > 1 ? columns.places.at(-1) / columns.places[0] : 1;
  return {
    width, height: between(Math.round(width * 0.56), 220, 420), legend: { show: false }, padding: [14, 26, 0, 0],
    cursor: { y: false, drag: { x: true, y: false } },
    scales: { x: { time: false, ...(wide ? { distr: 3, log: 2 } : {}) }, y: steep ? { distr: 3 } : { range: (_, low, high) => [Math.min(0, 1.06 * low), Math.max(0, 1.06 * high) || 1] } },
    axes: [
      { ...axis, space: 56, size: 30, values: (_, splits) => splits.map((value) => (value === null || (wide && far > 4096 && Math.round(Math.log2(value)) % 2) ? "" : first.bytes ? size(value).replace("iB", "") : Number.isInteger(value) ? String(value) : "")) },
      { ...axis, size: 78, values: (_, splits) => splits.map((value) => (value === null ? "" : Number.isInteger(value) || value < 1 ? unitOf(first, value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "") : unitOf(first, value))) }],
    series: [{}, ...seriesOf(curves, hidden)],
    bands: curves.map((_, number) => ({ series: [3 * number + 3, 3 * number + 2], fill: `${colour(`--s${number % 8}`)}33` })),
    hooks: {
      draw: [levelLines(curves, hidden)],
      setCursor: [(plot) => {
        const place = plot.cursor.idx;
        told.textContent = place === null || place === undefined ? "" : [at(first, columns.places[place]), ...curves.map((curve, number) => {
          const value = columns.series[3 * number][place];
          return isNumber(value) && !hidden.has(number) ? `${inert(curve.title)} ${unitOf(curve, value)}` : null;
        }).filter(Boolean)].join(" · ");
      }] },
  };
}

/** A plot that fills its place, made anew when the place or the colours change. */
function fitted(place, make) {
  const held = { plot: null };
  held.draw = () => {
    const width = Math.floor(place.clientWidth);
    if (width < 50) return;
    held.plot?.destroy();
    held.plot = make(width);
  };
  new ResizeObserver(() => { if (held.plot?.width !== Math.floor(place.clientWidth)) held.draw(); }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", held.draw);
  return held;
}

const pictureOf = (held, title) => button("PNG", () => held.plot?.ctx.canvas.toBlob((blob) => keep(`${title}.png`, "image/png", blob)), { class: "save" });

/** Curves of one chart below a title, with a line of words if it takes one. */
function chartOf(title, curves, words) {
  const columns = columnsOf(curves), hidden = new Set(), [first] = curves;
  const told = el("p", { class: "told cursor", "aria-hidden": "true" });
  const place = el("div", { class: "plot", role: "img", "aria-label": `${title}; the table below holds its points` });
  const held = fitted(place, (width) => new uPlot(optionsOf(curves, columns, hidden, width, told), [columns.places, ...columns.series], place));
  const key = curves.map((curve, number) => {
    const swatch = el("span", { class: `swatch s${number % 8}` });
    const turn = () => { hidden.delete(number) || hidden.add(number); made.setAttribute("aria-pressed", String(!hidden.has(number))); held.draw(); };
    const made = el("button", { type: "button", class: "key", "aria-pressed": "true", onclick: turn }, swatch, curve.title);
    return made;
  });
  const head = [first.parameter, ...curves.map(({ title }) => title)];
  const cell = (value, curve) => (value ? `${unitOf(curve, value.estimate)} [${digits(value.low)}, ${digits(value.high)}]` : "");
  const rows = columns.places.map((value, row) => [at(first, value), ...curves.map((curve, number) => cell(columns.known[number].get(columns.places[row]), curve))]);
  const lines = () => csv([[first.parameter, ...curves.flatMap(({ title, unit }) => [`${title} ${unit}`, `${title} low`, `${title} high`])],
    ...columns.places.map((value, row) => [value, ...columns.series.map((column) => column[row] ?? "")])]);
  const remarks = curves.flatMap((curve) => [...levelWords(curve), ...curve.remarks]);
  return el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, title), words && el("p", { class: "dim" }, words)),
    curves.length > 1 && el("div", { class: "keys", role: "group", "aria-label": `curves of ${title}` }, key), place, told,
    remarks.length > 0 && el("ul", { class: "remarks" }, remarks.map((remark) => el("li", {}, remark))),
    el("div", { class: "below" }, el("details", {}, el("summary", {}, "the numbers"), plainTable(title, head, rows, head.map((_, column) => column))),
      saver("CSV", `${title}.csv`, "text/csv", lines), pictureOf(held, title)));
}

function levelWords(curve) {
  const level = ({ name, first, last, latency, cycles, reported }) => `${curve.title}: ${name ?? "a level"} from ${at(curve, first)} to ${at(curve, last)}, ${unitOf(curve, latency.estimate)}` +
    (isNumber(cycles) ? `, ${digits(cycles)} cycles` : "") + (reported ? `; the kernel reports ${size(reported)}` : "");
  const fall = curve.fall && `${curve.title}: falls from ${unitOf(curve, curve.fall.before.estimate)} to ${unitOf(curve, curve.fall.after.estimate)} between ${size(curve.fall.step[0])} and ${size(curve.fall.step[1])}`;
  return [...curve.levels.map(level), ...(fall ? [fall] : [])];
}

/** The time between every two CPUs, darker where it is longer; the colours are those of one hue, so that a colour-blind reader can tell them apart. */
function coreMap({ one }) {
  const { cpus, rows } = one.matrix, values = rows.flat().filter(isNumber);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const cell = (row, column) => {
    const value = row === column ? null : rows[Math.max(row, column)]?.[Math.min(row, column)];
    if (!isNumber(value)) return el("td", { class: "none" }, "");
    const share = most > least ? (value - least) / (most - least) : 0;
    const made = el("td", { class: share > 0.5 ? "deep" : "pale" }, cpus.length <= 32 ? digits(value) : "");
    made.style.setProperty("--share", `${Math.round(100 * share)}%`);
    if (cpus.length > 32) made.setAttribute("title", `${cpus[row]} and ${cpus[column]}: ${amount(value, data.unit)}`);
    return made;
  };
  const lines = () => csv([["CPU", ...cpus], ...cpus.map((cpu, row) => [cpu, ...cpus.map((_, column) => (row === column ? "" : rows[Math.max(row, column)]?.[Math.min(row, column)] ?? ""))])]);
  const title = `${one.id}: ${data.unit} between every two CPUs`;
  return el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, title)),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      el("table", { class: "map" }, el("caption", { class: "heard" }, title),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "CPU"), cpus.map((cpu) => el("th", { scope: "col" }, cpu)))),
        el("tbody", {}, cpus.map((cpu, row) => el("tr", {}, el("th", { scope: "row" }, cpu), cpus.map((_, column) => cell(row, column))))))),
    el("div", { class: "below" }, el("span", { class: "dim" }, `${amount(least, data.unit)} to ${amount(most, data.unit)}`), saver("CSV", `${one.id}.csv`, "text/csv", lines)));
}

/** The section with all charts, or nothing. */
function curveSection() {
  const charts = data.groups.flatMap((group) => {
    const named = new Map();
    for (const curve of group.curves) named.set(curve.chart, [...(named.get(curve.chart) ?? []), curve]);
    return [...named].map(([chart, curves]) => chartOf(`${group.name}: ${chart} against ${curves[0].parameter}`, curves));
  });
  const maps = allCases.filter(({ one }) => one.matrix?.cpus.length > 1).map(coreMap);
  if (charts.length + maps.length === 0) return null;
  return el("section", { id: "curves" }, el("h2", {}, "Curves"), el("div", { class: "charts" }, charts, maps));
}
