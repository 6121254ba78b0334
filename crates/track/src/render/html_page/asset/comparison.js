// Records side by side as a forest of intervals, and comparisons by turns with their pairs.

const MARKS = { faster: "▼", slower: "▲", same: "=", inconclusive: "?", incomparable: "–" };
const verdict = (word) => el("span", { class: `verdict ${word}` }, el("span", { "aria-hidden": "true" }, MARKS[word] ?? ""), " ", word);

/** The axis of a forest: changes as logarithms, as far as most of them reach. */
function axisOf(shares, threshold) {
  const sizes = shares.filter(isNumber).map((share) => Math.abs(Math.log1p(between(share, -0.95, 20)))).sort((a, b) => a - b);
  const far = Math.max(sizes[Math.floor(0.97 * (sizes.length - 1))] ?? 0, 3 * Math.log1p(threshold));
  return (share, width) => width / 2 + (width / 2 - 6) * between(Math.log1p(Math.max(share, -0.95)) / far, -1.05, 1.05);
}

/** One row of a forest: the band of what is no change, the interval, the change. */
function forestDrawing({ change, low, high, kind, points }, axis, threshold, width = 260, height = 22) {
  const x = (share) => axis(share, width).toFixed(1), middle = height / 2;
  const words = isNumber(change) ? `change ${percent(change)}${isNumber(low) ? `, from ${percent(low)} to ${percent(high)}` : ""}` : "no change known";
  return svg("svg", { class: `drawing forest ${kind}`, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words },
    svg("rect", { class: "band", x: x(-threshold), y: 0, width: (axis(threshold, width) - axis(-threshold, width)).toFixed(1), height }),
    svg("line", { class: "ground", x1: width / 2, x2: width / 2, y1: 0, y2: height }),
    (points ?? []).map(([share, rejected], at) => svg("circle", { class: rejected ? "ring rejected" : "pair", cx: x(share), cy: (4 + ((at * 7) % (height - 8))).toFixed(1), r: 2 })),
    isNumber(low) && svg("line", { class: "interval", x1: x(low), x2: x(high), y1: middle, y2: middle }),
    isNumber(change) && svg("rect", { class: "change", x: (axis(change, width) - 4).toFixed(1), y: middle - 4, width: 8, height: 8 }));
}

function tallyOf(words) {
  const order = ["slower", "faster", "same", "inconclusive", "incomparable"];
  return el("p", { class: "tally" }, order.map((word) => [words.filter((other) => other === word).length, word])
    .filter(([count]) => count > 0).map(([count, word]) => [el("span", { class: `verdict ${word}` }, `${MARKS[word]} ${count} ${word}`), " "]));
}

/** The reason that most rows have in common, which is said once above them. */
function commonReason(rows) {
  const counts = new Map();
  for (const { reason } of rows) if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [most, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
  return count > 1 && count > rows.length / 3 ? { reason: most, count } : null;
}

function forest(title, head, rows, threshold, name) {
  const common = commonReason(rows);
  const axis = axisOf(rows.flatMap(({ change, low, high }) => [change, low, high]), threshold);
  const row = (one) => el("tr", {}, el("th", { scope: "row", class: "id" }, breakable(one.id)),
    one.values.map((value) => el("td", { class: "number second" }, amount(value, one.unit))),
    el("td", { class: "number" }, percent(one.change)),
    el("td", { class: "picture" }, forestDrawing(one, axis, threshold)),
    el("td", { class: "judged" }, verdict(one.kind), one.reason && one.reason !== common?.reason && el("details", {}, el("summary", {}, "why"), one.reason)));
  const lines = () => csv([["id", "first", "second", "change", "low", "high", "verdict", "reason"],
    ...rows.map((one) => [one.id, ...one.values, one.change ?? "", one.low ?? "", one.high ?? "", one.kind, one.reason])]);
  return [tallyOf(rows.map(({ kind }) => kind)), common && el("p", { class: "why" }, `${common.count} rows: ${common.reason}`),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      el("table", { class: "forest" }, el("caption", { class: "heard" }, title),
        el("thead", {}, el("tr", {}, head.map((cell, number) => el("th", { scope: "col", class: [1, 2].includes(number) ? "number second" : number === 3 ? "number" : number === 4 ? "picture" : null }, cell)))),
        el("tbody", {}, rows.map(row)))),
    el("div", { class: "below" }, saver("CSV", `${name}.csv`, "text/csv", lines))];
}

function sideWords(side) {
  const parts = [side.kernels.join(", "), counted(side.boots, "boot", "boots"), counted(side.sessions, "session", "sessions"), counted(side.processes, "process", "processes"), side.scale];
  return `${side.name}: ${parts.filter(Boolean).join(", ")}`;
}

/** One record against the first. */
function against(comparison, number) {
  const [first, side] = [comparison.baselines[0], comparison.baselines[number]], title = `${side.name} against ${first.name}`;
  const rows = comparison.rows.map((row) => {
    const change = row.cells[number].change ?? {}, [low, high] = change.interval ?? [];
    return { id: row.id, unit: side.unit, values: [row.cells[0].value?.estimate, row.cells[number].value?.estimate], change: isNumber(change.ratio) ? change.ratio - 1 : null, low: isNumber(low) ? low - 1 : null, high: isNumber(high) ? high - 1 : null, kind: change.verdict ?? "incomparable", reason: change.reason };
  });
  const relation = side.relation ?? {};
  const remarks = [relation.incomparable, ...(relation.warnings ?? []), ...(relation.differences ?? []).map(({ field, ours, theirs }) => `${field}: ${ours} → ${theirs}`)].filter(Boolean);
  return el("section", {}, el("h3", {}, title), el("p", { class: "dim" }, sideWords(first)), el("p", { class: "dim" }, sideWords(side)),
    remarks.length > 0 && el("details", {}, el("summary", {}, counted(remarks.length, "remark on the two", "remarks on the two")), el("ul", {}, remarks.map((remark) => el("li", {}, remark)))),
    forest(title, ["case", first.name, side.name, "change", "95 % interval", "verdict"], rows, comparison.threshold, title));
}

function comparisonSection() {
  const { comparison } = data;
  return comparison && el("section", { id: "comparison" }, el("h2", {}, "Comparison"),
    el("p", {}, `The grey band is ± ${100 * comparison.threshold} %: a change within it is none. The weightiest change comes first.`),
    comparison.baselines.slice(1).map((_, number) => against(comparison, number + 1)));
}

function byTurns(pairs) {
  const title = `${pairs.sides[1]} against ${pairs.sides[0]}`;
  const weight = ({ kind, change }) => (kind === "slower" || kind === "faster" ? 2 : 0) + Math.abs(change ?? 0) / 100;
  const rows = pairs.cases.map((one) => ({ id: one.id + (one.canary ? " (canary)" : ""), unit: "ns", values: one.pairs > 0 ? one.cost_ns : [null, null], change: one.pairs > 0 ? one.change.estimate : null, low: one.pairs > 0 ? one.change.low : null, high: one.pairs > 0 ? one.change.high : null, kind: one.verdict, points: one.points,
    reason: [one.reason, one.remark, one.pairs > 0 && `${one.pairs} pairs, ${one.rejected} rejected`].filter(Boolean).join("; ") })).sort((a, b) => weight(b) - weight(a));
  return el("section", {}, el("h3", {}, title),
    el("p", { class: "dim" }, `${pairs.run}, ${moment(pairs.started)} UTC, ${pairs.by_turns ? "by turns" : "in blocks"}; each point is a pair, a ring one that does not count`),
    pairs.notes.length > 0 && el("ul", {}, pairs.notes.map((note) => el("li", {}, note))),
    forest(title, ["case", "A", "B", "change", "pairs and interval", "verdict"], rows, pairs.threshold, `pairs-${pairs.run}`));
}

function pairSection() {
  return data.pairs.length > 0 && el("section", { id: "pairs" }, el("h2", {}, "By turns"), data.pairs.map(byTurns));
}
