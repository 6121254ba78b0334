// Puts the page together.

function navigation(sections) {
  const link = ([id, name]) => el("button", { type: "button", onclick: () => document.getElementById(id).scrollIntoView() }, name);
  return el("nav", { "aria-label": "sections" }, sections.map(link));
}

read();
document.title = inert([fact("processor") ?? "syscost", data.run || "history"].join(" · "));
const curves = curveSection(), comparison = comparisonSection(), pairs = pairSection(), histories = historySection(), paper = paperSection();
const { panel, update } = manualPanel();
const cases = allCases.length > 0;
const sections = [histories && ["history", "History"], comparison && ["comparison", "Comparison"], pairs && ["pairs", "By turns"], cases && ["cases", "Cases"], curves && ["curves", "Curves"], paper && ["paper", "Beside 1997"]].filter(Boolean);
const top = machineHead();
document.body.prepend(...[top, sections.length > 1 && navigation(sections),
  el("main", {}, histories, comparison, pairs, cases && caseTable(), curves, paper), panel,
  el("footer", {}, el("p", {}, `${data.tool}. `, cases && ["The record itself: ", el("code", {}, "syscost report --format json"), ". "], "Charts by uPlot, whose licence is in this file."))].filter(Boolean));
for (const listener of state.listeners) listener({});
update();
arrive();
