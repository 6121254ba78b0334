// The head of the page: whose numbers these are, and how far they can be believed.

const allCases = data.groups.flatMap((group) => group.cases.map((one) => ({ group, one })));
const OUTCOMES = ["measured", "unwitnessed", "not settled", "disturbed", "skipped", "failed"];
const fact = (name) => data.machine.find(([other]) => other === name)?.[1];

/** The numbers of cases by how they ended; each filters the table. */
function outcomes() {
  const chip = (outcome) => {
    const count = allCases.filter(({ one }) => one.outcomes.includes(outcome)).length;
    if (count === 0) return null;
    const made = button([el("b", {}, count), ` ${outcome}`], () => show({ outcome: state.outcome === outcome ? "" : outcome }), { class: `chip ${outcome.replace(" ", "-")}`, "aria-pressed": "false" });
    state.listeners.push(() => made.setAttribute("aria-pressed", String(state.outcome === outcome)));
    return made;
  };
  return el("div", { class: "chips", role: "group", "aria-label": "cases by outcome" }, OUTCOMES.map(chip));
}

function facts(title, rows, open) {
  return el("details", { open }, el("summary", {}, title),
    el("dl", {}, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}

function doctor() {
  if (data.findings.length === 0) return null;
  const one = ([what, why, remedy]) => el("li", {}, el("b", {}, what), el("p", {}, why), el("p", {}, "→ ", remedy));
  return el("details", {}, el("summary", {}, `The doctor: ${counted(data.findings.length, "remark", "remarks")} on this machine`),
    el("ul", { class: "findings" }, data.findings.map(one)));
}

/** Links to the pages beside this one. */
function otherPages() {
  const beside = data.others.filter(([address]) => /^(runs\/|\.\.\/)[\w.-]+\.html$/.test(address));
  const link = ([address, words]) => el("li", {}, el("a", { href: address }, words));
  return beside.length > 0 && el("details", {}, el("summary", {}, counted(beside.length, "other page", "other pages")), el("ul", {}, beside.map(link)));
}

function machineHead() {
  const long = data.seconds > 0 ? `measured for ${lasting(data.seconds)}` : null;
  const kernel = fact("kernel");
  const ofRun = data.run ? [`${data.scale} scale`, `${moment(data.started)} UTC`, long, data.unit !== "ns" && `counts ${data.unit}`] : [];
  const line = [kernel && `Linux ${kernel}`, ...ofRun];
  const mitigations = Object.entries(data.mitigations);
  const clocks = [...new Set(data.groups.map(({ clock }) => clock))].filter(Boolean);
  const run = [["run", data.run], ["session", data.session], ["seed", data.run && data.seed], ["tool", data.tool], ["counter", clocks.slice(0, 3).join(" · ")]];
  return el("header", {},
    el("p", { class: "over" }, data.run ? "what this machine charges" : "what changed, and when"),
    el("h1", {}, (fact("processor") ?? data.run) || "syscost"),
    el("p", { class: "under" }, line.filter(Boolean).map((part) => el("span", {}, part))),
    outcomes(),
    el("div", { class: "facts" },
      facts("Machine and run", [...data.machine, ...run.filter(([, value]) => value !== null && value !== "")]),
      mitigations.length > 0 && facts(`Mitigations: ${mitigations.length} vulnerabilities`, mitigations),
      doctor(), otherPages()));
}
