// The tables and figures of the paper that a group redoes, ours beside those of 1997.

const isSaid = (cell) => cell !== "" && cell !== "–";

/** A table without the columns that the run has nothing for. */
function paperTable({ title, head, rows, notes }) {
  const held = head.map((_, at) => at).filter((at) => rows.some((row) => isSaid(row[at])));
  const of = (row) => held.map((at) => row[at]);
  return el("figure", { class: "chart paper" }, el("figcaption", {}, el("h3", {}, title)),
    plainTable(title, of(head), rows.map(of), held.slice(1).map((_, at) => at + 1)),
    notes.length > 0 && el("ul", { class: "remarks" }, notes.map((note) => el("li", {}, inline(note)))),
    el("div", { class: "below" }, saver("CSV", `${title.slice(0, 40)}.csv`, "text/csv", () => csv([head, ...rows]))));
}

const figureOf = ({ title, curves }) => chartOf(title, curves, `${curves[0].chart} against ${curves[0].parameter}; dashed: 1997`);

/** The section, or nothing. */
function paperSection() {
  const papers = data.groups.map(({ paper }) => paper).filter(Boolean);
  return papers.length > 0 && el("section", { id: "paper" }, el("h2", {}, "Displacement beside 1997"),
    el("p", {}, "What processes take from a CPU, by displacement and by the kernel's accounts, beside the numbers of Woodside, Courtois and Schramm."),
    papers.map(({ tables, figures }) => [el("div", { class: "charts" }, figures.map(figureOf)), tables.map(paperTable)]));
}
