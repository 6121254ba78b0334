// The observation table: every case, with search, filters, order, and a link to each row.

const predictedOf = (one) => (one.expected ? one.expected[0] + one.expected[1] : null);

/** Key, head, what orders the rows, and the class of its cells. */
const COLUMNS = [
  { key: "case", head: "case", of: ({ one }) => one.id, kind: "id" },
  { key: "quiet", head: data.unit === "ns" ? "quiet" : data.unit, of: ({ one }) => one.figure?.[0], kind: "number main", say: "the cost without interference" },
  { key: "interval", head: "next run", of: ({ one }) => one.figure && (one.figure[2] - one.figure[1]) / one.figure[0], kind: "number second", say: "where the next run's figure will lie, 19 times in 20; ordered by its width" },
  { key: "typical", head: "typical", of: ({ one }) => one.typical?.[0], kind: "number second", say: "the median over all executions" },
  { key: "samples", head: "samples", of: ({ one }) => one.shape && one.shape.high / one.shape.low, kind: "picture", say: "the samples' distribution; ordered by how far they spread" },
  { key: "expected", head: "expected", of: ({ one }) => predictedOf(one), kind: "number second", say: "hardware and software, predicted before it was measured" },
  { key: "ratio", head: "ratio", of: ({ one }) => one.ratio, kind: "number third", say: "the figure over what was expected" },
];

function idCell({ group, one }) {
  const rest = one.id.startsWith(`${group.name}/`) ? one.id.slice(group.name.length) : null;
  const id = rest === null ? breakable(one.id) : [el("span", { class: "dim" }, group.name), breakable(rest)];
  const toggle = () => {
    const open = new Set(state.open);
    open.delete(one.id) || open.add(one.id);
    show({ open });
  };
  return el("th", { scope: "row", class: "id" },
    el("button", { type: "button", class: "case", "aria-expanded": "false", onclick: toggle }, id),
    el("a", { class: "link", href: linkTo(one.id), "aria-label": `link to ${one.id}` }, "#"),
    one.outcome !== "measured" && el("span", { class: `mark ${one.outcome.replace(" ", "-")}` }, one.outcome));
}

function figureCells(one) {
  const predicted = predictedOf(one);
  return [
    amount(one.figure[0], data.unit), ends(one.figure, data.unit), amount(one.typical[0], data.unit),
    one.shape && shapeDrawing(one, 120, 22), isNumber(predicted) ? amount(predicted, "ns") : "",
    isNumber(one.ratio) ? [times(one.ratio), " ", one.ratio > 0 && ratioDrawing(one.ratio)] : ""];
}

function rowOf(entry) {
  const { one } = entry;
  const cells = one.figure
    ? figureCells(one).map((cell, at) => el("td", { class: COLUMNS[at + 1].kind }, cell))
    : [el("td", { class: "sentence", colspan: COLUMNS.length - 1 }, one.sentence)];
  return el("tr", { id: `case:${one.id}`, class: "row" }, idCell(entry), cells);
}

function groupRow(group) {
  const notes = [...group.fits.map((fit) => `${fit.step} costs ${amount(fit.slope.estimate, data.unit)} ${ends([fit.slope.estimate, fit.slope.low, fit.slope.high], data.unit)}, fitted over ${fit.cases} cases`), ...group.notes];
  return el("tr", { class: "group" }, el("th", { colspan: COLUMNS.length, scope: "colgroup" },
    el("span", { class: "name" }, group.name),
    el("span", { class: "dim" }, ` ${counted(group.cases.length, "case", "cases")}, version ${group.version}`),
    group.manual && button("manual", () => show({ manual: group.name }), { class: "small", "aria-label": `manual of ${group.name}` }),
    group.paper && button("tables", () => document.getElementById("paper").scrollIntoView(), { class: "small", "aria-label": `tables of ${group.name}` }),
    notes.length > 0 && el("details", {}, el("summary", {}, counted(notes.length, "note", "notes")), el("ul", {}, notes.map((note) => el("li", {}, note))))));
}

function headRow() {
  const one = (column) => {
    const turn = () => {
      const again = state.sort === column.key;
      show(again && state.down ? { sort: "", down: false } : { sort: column.key, down: again });
    };
    const th = el("th", { scope: "col", class: column.kind, "aria-sort": "none" }, button(column.head, turn, { title: column.say }));
    state.listeners.push(() => th.setAttribute("aria-sort", state.sort !== column.key ? "none" : state.down ? "descending" : "ascending"));
    return th;
  };
  return el("thead", {}, el("tr", {}, COLUMNS.map(one)));
}

/** The cases that are asked for, in the order that is asked for. */
function chosen() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = allCases.filter(({ group, one, words: text }) =>
    (!state.group || group.name === state.group) && (!state.outcome || one.outcomes.includes(state.outcome)) && words.every((word) => text.includes(word)));
  const column = COLUMNS.find(({ key }) => key === state.sort);
  if (!column) return wanted;
  const factor = state.down ? -1 : 1;
  const order = (a, b) => {
    const [x, y] = [column.of(a) ?? null, column.of(b) ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return factor * (isNumber(x) && isNumber(y) ? x - y : String(x).localeCompare(String(y)));
  };
  return wanted.sort(order);
}

function csvOfCases() {
  const head = ["id", "title", "group", "outcome", "unit", "quiet", "next_run_low", "next_run_high", "typical", "hardware", "software", "measured_over_predicted", "sentence"];
  const line = ({ group, one }) => [one.id, one.title, group.name, one.outcome, data.unit, ...(one.figure ?? ["", "", ""]), one.typical?.[0], ...(one.expected ?? ["", ""]), one.ratio, one.sentence ?? one.evidence?.join(" ")];
  return csv([head, ...chosen().map(line)]);
}

function tools(told) {
  const search = el("input", { type: "search", id: "search", placeholder: "search cases", "aria-label": "search cases", autocomplete: "off", spellcheck: "false", oninput: () => show({ search: search.value }) });
  const select = el("select", { "aria-label": "group", onchange: () => show({ group: select.value }) },
    el("option", { value: "" }, "all groups"), data.groups.map(({ name }) => el("option", { value: name }, name)));
  state.listeners.push(() => {
    if (search.value !== state.search) search.value = state.search;
    select.value = state.group;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
  return el("div", { class: "tools", role: "search", "aria-label": "cases" }, search, select, told,
    button("clear", () => show({ search: "", group: "", outcome: "", sort: "", down: false, open: new Set() })),
    saver("CSV", "cases.csv", "text/csv", csvOfCases));
}

/** Skipped cases of a group in one row for each reason, until the reader opens the row. */
function foldedRows(group) {
  const reasons = new Map();
  for (const one of group.cases) {
    if (one.outcome === "skipped" && !state.open.has(one.id)) reasons.set(one.sentence, [...(reasons.get(one.sentence) ?? []), one]);
  }
  return [...reasons].filter(([, cases]) => cases.length > 1).map(([sentence, cases]) => ({ cases, row: el("tr", { class: "fold", "data-cases": cases.length },
    el("th", { scope: "row", class: "id" }, button(`${cases.length} skipped`, () => show({ group: group.name, outcome: "skipped" }), { class: "case", title: "show them" })),
    el("td", { class: "sentence", colspan: COLUMNS.length - 1 }, sentence)) }));
}

/** What makes the rows in the table's own order: each group's head, its cases, and what of it is folded. */
function groupedRows(found, groupRows) {
  const folds = !state.search && !state.outcome && !state.group, rows = [];
  for (const group of data.groups) {
    const entries = found.filter((entry) => entry.group === group);
    if (entries.length === 0) continue;
    const folded = folds ? foldedRows(group) : [], away = new Set(folded.flatMap(({ cases }) => cases));
    rows.push(() => [groupRows.get(group)], ...entries.filter(({ one }) => !away.has(one)).map((entry) => () => openRows(entry)), () => folded.map(({ row }) => row));
  }
  return rows;
}

/** The row of a case, and what is known of it if it is open. */
function openRows(entry) {
  const open = state.open.has(entry.one.id);
  entry.row ??= rowOf(entry);
  entry.row.querySelector("button.case").setAttribute("aria-expanded", String(open));
  return open ? [entry.row, entry.detail ??= detailRow(entry)] : [entry.row];
}

/** Fills a table with the rows that these make: what is seen first at once, the rest in pieces, so that the page answers. */
function fillSlowly(body, makers) {
  const FIRST = 150, PIECE = 400;
  const take = (count) => body.append(...makers.splice(0, count).flatMap((make) => make()));
  body.replaceChildren();
  body.rest = () => take(makers.length);
  take(FIRST);
  const mine = (fillSlowly.turn = (fillSlowly.turn ?? 0) + 1);
  const more = () => {
    if (mine !== fillSlowly.turn || makers.length === 0) return;
    take(PIECE);
    setTimeout(more);
  };
  setTimeout(more);
}

/** The section with the table. */
function caseTable() {
  const body = el("tbody"), told = el("span", { class: "told", role: "status" });
  for (const entry of allCases) entry.words = `${entry.one.id} ${entry.one.title} ${entry.one.outcome}`.toLowerCase();
  const groupRows = new Map(data.groups.map((group) => [group, groupRow(group)]));
  const update = () => {
    const found = chosen();
    fillSlowly(body, state.sort ? found.map((entry) => () => openRows(entry)) : groupedRows(found, groupRows));
    told.textContent = found.length === allCases.length ? counted(found.length, "case", "cases") : `${found.length} of ${allCases.length} cases`;
  };
  const elsewhere = new Set(["manual", "series", "seek", "zoom"]);
  state.listeners.push((changes) => { const words = Object.keys(changes); if (words.length === 0 || words.some((word) => !elsewhere.has(word))) update(); });
  return el("section", { id: "cases", "aria-labelledby": "cases-head" }, el("h2", { id: "cases-head" }, "Cases"), tools(told),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "observation table" },
      el("table", { class: "cases" }, el("caption", { class: "heard" }, `cases of the run ${data.run}`), headRow(), body)));
}
