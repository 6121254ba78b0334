// All that is known of one case, below its row.

const list = (title, sentences, kind) => sentences?.length > 0 && el("section", { class: kind }, el("h3", {}, title), el("ul", {}, sentences.map((sentence) => el("li", {}, sentence))));

function figureList(one) {
  const unit = data.unit, predicted = predictedOf(one);
  const interval = ({ estimate, low, high }, of) => `${amount(estimate, of)} ${ends([estimate, low, high], of)}`;
  const rows = [
    [one.quiet ? "quiet, next run" : "median of one execution", `${amount(one.figure[0], unit)} ${ends(one.figure, unit)}`],
    ["typical", `${amount(one.typical[0], unit)} ${ends(one.typical, unit)}`],
    isNumber(one.faster) && ["a faster mode, met too seldom", amount(one.faster, unit)],
    isTime(unit) && ["ticks", digits(one.ticks)],
    isNumber(one.net) && ["net", amount(one.net, unit)],
    isNumber(predicted) && ["expected", `${amount(predicted, "ns")}: hardware ${amount(one.expected[0], "ns")}, software ${amount(one.expected[1], "ns")}`],
    isNumber(one.ratio) && ["measured over predicted", times(one.ratio)],
    isNumber(one.instructions) && ["instructions", digits(one.instructions)],
    ["samples", `${one.samples}, ${one.disturbed} of them disturbed, in ${counted(one.executions.length || 1, "execution", "executions")}`],
    one.earlier > 0 && ["earlier runs in the interval", one.earlier],
    ...one.derived.map((other) => [other.name, interval(other.value, other.unit)]),
    ...(one.percentiles ?? []).map(([at, value]) => [at <= 0 ? "minimum" : at >= 100 ? "maximum" : `p${at}`, amount(value, unit)])];
  return el("dl", { class: "figures" }, rows.filter(Boolean).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function drawn(title, drawing, name) {
  return el("figure", {}, drawing, el("figcaption", {}, title, " ",
    saver("SVG", `${name}.svg`, "image/svg+xml", () => asFile(drawing))));
}

function detailRow({ group, one }) {
  const why = one.why && el("p", { class: "why" }, `Expected because: ${one.why}`);
  const content = one.figure ? [
    figureList(one),
    el("div", { class: "drawings" },
      one.shape && drawn(shapeWords(one), shapeDrawing(one, 460, 110, true), `${one.id}-samples`),
      one.executions.length > 1 && drawn("executions: lower quartile (filled) and median (ring)", executionDrawing(one, 460, 110), `${one.id}-executions`)),
    why,
    list("What proves it", one.evidence, "held"), list("What could not be asked here", one.unasked),
    list("Left out", one.left_out), one.meanwhile && el("p", { class: "why" }, `Meanwhile: ${one.meanwhile}.`),
  ] : [el("p", {}, one.sentence)];
  const links = el("p", { class: "links" },
    group.manual && button(`manual of ${group.name}`, () => show({ manual: group.name }), { class: "small" }));
  return el("tr", { class: "detail" }, el("td", { colspan: COLUMNS.length },
    el("div", { class: "inside" }, el("p", { class: "title" }, one.title), content, links)));
}
