// Puts the page together.

function navigation(sections) {
  const link = ([id, name]) => el("button", { type: "button", onclick: () => document.getElementById(id).scrollIntoView() }, name);
  return el("nav", { "aria-label": "sections" }, sections.map(link));
}

read();
document.title = inert(`${fact("processor") ?? "syscost"} · ${data.run}`);
const curves = curveSection(), comparison = comparisonSection(), pairs = pairSection();
const { panel, update } = manualPanel();
const sections = [comparison && ["comparison", "Comparison"], pairs && ["pairs", "By turns"], ["cases", "Cases"], curves && ["curves", "Curves"]].filter(Boolean);
const top = machineHead();
document.body.prepend(...[top, sections.length > 1 && navigation(sections),
  el("main", {}, comparison, pairs, caseTable(), curves), panel,
  el("footer", {}, el("p", {}, `${data.tool}. `, "The record itself: ", el("code", {}, "syscost report --format json"), ". Charts by uPlot, whose licence is in this file."))].filter(Boolean));
for (const listener of state.listeners) listener({});
update();
arrive();
