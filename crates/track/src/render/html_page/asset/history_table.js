// The cases of a history: how they went, where they stand, and what they did in the part that is shown.

const HISTORY_ROWS = 100;

/** A series as a line over all nights, with a mark at each step. */
function sparkline(series, one, width = 150, height = 24) {
  const [low, high] = [Math.min(0, ...series.ratio), Math.max(0, ...series.ratio)], span = Math.max(high - low, 0.004), middle = (low + high) / 2;
  const x = (night) => (2 + ((width - 4) * night) / Math.max(1, one.nights.length - 1)).toFixed(1);
  const y = (ratio) => (height / 2 - ((ratio - middle) / span) * (height - 6)).toFixed(1);
  const line = series.ratio.map((ratio, at) => `${at === 0 ? "M" : "L"}${x(series.nights[at])} ${y(ratio)}`).join("");
  return svg("svg", { class: "drawing spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `from ${percent(series.ratio[0])} to ${percent(series.ratio.at(-1))}, ${counted(series.steps.length, "step", "steps")}` },
    svg("line", { class: "ground", x1: 0, x2: width, y1: y(0), y2: y(0) }), svg("path", { class: "line", d: line }),
    series.steps.map(({ night, change }) => svg("line", { class: change > 0 ? "step slower" : "step faster", x1: x(night - 0.5), x2: x(night - 0.5), y1: 1, y2: height - 1 })));
}

/** The middle of up to three values. */
const middleOf = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** How a series stands at the end of these nights against their beginning, by the middle of three nights each. */
function changeWithin(series, first, last) {
  const inside = series.ratio.filter((_, at) => series.nights[at] >= first && series.nights[at] <= last);
  if (inside.length < 2) return null;
  const few = Math.min(3, Math.floor(inside.length / 2));
  return (1 + middleOf(inside.slice(-few))) / (1 + middleOf(inside.slice(0, few))) - 1;
}

function seriesRow(series, one) {
  const toggle = () => {
    const keys = new Set(state.series.size > 0 ? state.series : charted(one).map(({ key }) => key));
    keys.delete(series.key) || keys.add(series.key);
    show({ series: new Set([...keys].slice(-MOST_SERIES)) });
  };
  const pressed = button(breakable(series.id + (series.canary ? " (canary)" : "")), toggle, { class: "case pick", "aria-pressed": "false", title: "in the chart or not" });
  const change = el("td", { class: "number" });
  return { series, pressed, change, row: el("tr", { class: "row" }, el("th", { scope: "row", class: "id" }, pressed),
    el("td", { class: "picture" }, sparkline(series, one)),
    el("td", { class: "number main" }, percent(series.ratio.at(-1))), el("td", { class: "number second" }, `± ${(100 * series.half.at(-1)).toFixed(2)} %`),
    change, el("td", { class: "number third" }, series.steps.length || ""), el("td", { class: "number second" }, amount(series.cost, one.unit))) };
}

function seriesTable(one) {
  const body = el("tbody"), told = el("span", { class: "told", role: "status" }), made = new Map();
  const weight = ({ steps, ratio, canary }) => (canary ? -1 : 0) + Math.max(0, ...steps.map(({ change }) => 10 * Math.abs(change))) + Math.abs(ratio.at(-1));
  const ordered = one.series.filter(({ ratio }) => ratio.length > 0).sort((a, b) => weight(b) - weight(a));
  const search = el("input", { type: "search", placeholder: "search cases of the history", "aria-label": `search cases of the history ${one.name}`, autocomplete: "off", spellcheck: "false", oninput: () => show({ seek: search.value }) });
  const rowOfSeries = (series) => made.get(series) ?? made.set(series, seriesRow(series, one)).get(series);
  const update = () => {
    if (search.value !== state.seek) search.value = state.seek;
    const words = state.seek.toLowerCase().split(/\s+/).filter(Boolean), found = ordered.filter(({ id }) => words.every((word) => id.toLowerCase().includes(word)));
    const rows = found.slice(0, HISTORY_ROWS).map(rowOfSeries), keys = new Set(charted(one).map(({ key }) => key)), [first, last] = shownNights(one);
    for (const { series, pressed, change } of rows) {
      pressed.setAttribute("aria-pressed", String(keys.has(series.key)));
      change.textContent = percent(changeWithin(series, first, last));
    }
    body.replaceChildren(...rows.map(({ row }) => row));
    told.textContent = rows.length < found.length ? `the ${rows.length} weightiest of ${found.length}; search for others` : counted(found.length, "case", "cases");
  };
  state.listeners.push((changes) => { if ("seek" in changes || "series" in changes || "zoom" in changes || Object.keys(changes).length === 0) update(); });
  const head = [["case", "id"], ["all nights", "picture"], ["now", "number"], ["", "number second"], ["in what is shown", "number"], ["steps", "number third"], ["costs now", "number second"]];
  const lines = () => csv([["id", "last change", "half interval", "steps", `cost (${one.unit})`], ...ordered.map(({ id, ratio, half, steps, cost }) => [id, ratio.at(-1), half.at(-1), steps.length, cost])]);
  return el("div", {}, el("div", { class: "tools", role: "search", "aria-label": `cases of the history ${one.name}` }, search, told, saver("CSV", `${one.name}-cases.csv`, "text/csv", lines)),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `cases of the history ${one.name}` },
      el("table", { class: "cases series" }, el("caption", { class: "heard" }, `cases of the history ${one.name}`),
        el("thead", {}, el("tr", {}, head.map(([name, kind]) => el("th", { scope: "col", class: kind }, name || el("span", { class: "heard" }, "half of the interval"))))), body)));
}

/** Events, chart and table of one history, for the points that are chosen. */
function oneHistory(history, number) {
  const one = unpacked(history, number);
  if (one.nights.length === 0 || one.series.length === 0) return [el("p", {}, "No point yet.")];
  const choice = choiceOf(history), chosen = choice ? [history.machines[choice.machine], history.software[choice.software]].filter(Boolean).join(", ") : "";
  const [first, last] = [one.nights[0], one.nights.at(-1)], cases = one.series.filter(({ ratio }) => ratio.length > 0).length;
  return [
    el("p", { class: "dim" }, `${counted(one.nights.length, "point", "points")}${chosen && ` of ${chosen}`} from ${dayOf(first)} to ${dayOf(last)}, ${counted(cases, "case", "cases")}, as changes against ${history.points[0].reference}, which was ${one.unit === "ns" ? "measured beside each of them by turns" : "counted beside each of them"}`),
    one.notes.length > 0 && el("ul", { class: "dim" }, one.notes.map((note) => el("li", {}, note))),
    el("h4", {}, counted(one.events.length, "event", "events")), eventList(one), ratioChart(one), seriesTable(one)];
}

/** The section with all histories, or nothing. */
function historySection() {
  return data.histories.length > 0 && el("section", { id: "history" }, el("h2", {}, "History"), data.histories.map(chosenHistory));
}
