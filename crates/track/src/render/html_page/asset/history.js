// Histories: ratios to a reference, night after night, and what changed. Chart and table show the same part of the nights.

const MOST_SERIES = 8;
/** Cases of an event that are named. */
const NAMED = 5;

/** A history with its numbers as shares, and the points of the chosen machine and software, without bridges, counted from 0. */
function unpacked(history, number) {
  const whole = history.points.flatMap((point, at) => (point.bridge_to === undefined ? [at] : []));
  const choice = choiceOf(history), regular = whole.filter((at) => isChosen(history.points[at], choice));
  const place = new Map(regular.map((at, night) => [at, night]));
  const series = history.series.map((one) => {
    const inside = (one.at ?? whole).flatMap((at, index) => (place.has(at) ? [[at, index]] : []));
    const [ratio, half] = [one.ratio, one.half].map((list) => inside.map(([, index]) => list[index] / 1e5));
    return { ...one, key: `${number}:${one.id}`, ratio, half, nights: inside.map(([at]) => place.get(at)), steps: [] };
  });
  const events = (choice ?? history).events.map((event) => ({ ...event, night: place.get(event.at) }));
  for (const event of events) for (const [at, change] of event.moved) series[at].steps.push({ night: event.night, change });
  const bridges = history.points.flatMap((point, at) => (point.bridge_to === undefined ? [] : [{ night: regular.filter((other) => other < at).length - 0.5, to: point.bridge_to }]));
  return { ...history, number, nights: regular.map((at) => history.points[at]), series, events, bridges };
}

/** The first and last night that are shown, of this history. */
function shownNights(one) {
  const [, from, to] = state.zoom.match(/^(\d+)-(\d+)$/) ?? [];
  const last = one.nights.length - 1;
  const [first, end] = [between(Number(from ?? 0), 0, last), between(Number(to ?? last), 0, last)];
  return first < end ? [first, end] : [0, last];
}

const dayOf = (point) => moment(point.started).slice(0, 10);
/** What stands below a night in the chart: its day, or of several points a day the first word of the label, such as a revision. */
function axisWords(one) {
  const days = new Set(one.nights.map(dayOf));
  return one.nights.map((point) => (2 * days.size > one.nights.length ? dayOf(point) : inert(point.label.split(" ")[0]).slice(0, 12)));
}
const nightWords = (point) => `${dayOf(point)} ${point.label}`;

/** The series in the chart: those that are asked for, or those of the weightiest event, or the first. */
function charted(one) {
  const asked = one.series.filter(({ key, ratio }) => state.series.has(key) && ratio.length > 0);
  if (asked.length > 0) return asked.slice(0, MOST_SERIES);
  const weight = ({ moved }) => moved.reduce((sum, [, change]) => sum + Math.abs(change), 0);
  const [event] = [...one.events].sort((a, b) => weight(b) - weight(a));
  return event ? event.moved.slice(0, 4).map(([at]) => one.series[at]) : one.series.filter(({ canary, ratio }) => !canary && ratio.length > 0).slice(0, 4);
}

/** `3 slower by 0.8 to 3.1 %, 1 faster by 2.0 %`. */
function eventWords(one, event) {
  const part = (word, kind, wanted) => {
    const shares = event.moved.filter(([at, change]) => wanted(one.series[at].canary, change)).map(([, change]) => 100 * Math.abs(change));
    if (shares.length === 0) return null;
    const [least, most] = [Math.min(...shares), Math.max(...shares)].map((share) => share.toFixed(1));
    return el("span", { class: `verdict ${kind}` }, el("span", { "aria-hidden": "true" }, MARKS[kind] ?? "!"), ` ${shares.length} ${word} by ${least === most ? most : `${least} to ${most}`} % `);
  };
  return [part("slower", "slower", (canary, change) => !canary && change > 0), part("faster", "faster", (canary, change) => !canary && change < 0), part("canaries moved", "inconclusive", (canary) => canary)];
}

function eventItem(one, event) {
  const [before, after] = [one.points[event.before], one.points[event.at]];
  const look = () => {
    const last = one.nights.length - 1;
    show({ series: new Set(event.moved.slice(0, MOST_SERIES).map(([at]) => one.series[at].key)), zoom: `${Math.max(0, event.night - 20)}-${Math.min(last, event.night + 20)}` });
  };
  return el("li", {}, el("b", {}, dayOf(after)), " ", eventWords(one, event), button("show", look, { class: "small", "aria-label": `show what changed on ${dayOf(after)}` }),
    el("p", { class: "dim" }, [`${before.label} → ${after.label}`, ...event.profile.map(([field, old, now]) => `${field}: ${old} → ${now}`), `found on ${dayOf(one.points[event.found])}`].join(" · ")),
    el("p", {}, event.moved.slice(0, NAMED).map(([at, change, half, functions]) => el("span", { class: "moved" }, el("span", { class: "id" }, one.series[at].id), ` ${percent(change)} ± ${(100 * half).toFixed(2)} `,
      functions.length > 0 && el("span", { class: "dim" }, ` ${functions.map(([name, by]) => `${by > 0 ? "+" : ""}${by.toFixed(2)} ${name}`).join(", ")}`))), event.moved.length > NAMED && `and ${event.moved.length - NAMED} more`));
}

function eventList(one) {
  const FEW = 6, items = [...one.events].sort((a, b) => b.at - a.at).map((event) => eventItem(one, event));
  if (items.length === 0) return el("p", {}, "Nothing changed.");
  return [el("ol", { class: "events", reversed: true }, items.slice(0, FEW)),
    items.length > FEW && el("details", {}, el("summary", {}, `${items.length - FEW} earlier events`), el("ol", { class: "events" }, items.slice(FEW)))];
}

/** Estimate, low and high end for each night: the columns of the chart. */
function ratioColumns(one, shown) {
  const columns = shown.flatMap(({ nights, ratio, half }) => {
    const column = (of) => {
      const values = Array(one.nights.length).fill(null);
      nights.forEach((night, at) => { values[night] = 100 * of(at); });
      return values;
    };
    return [column((at) => ratio[at]), column((at) => ratio[at] - half[at]), column((at) => ratio[at] + half[at])];
  });
  return [one.nights.map((_, night) => night), ...columns];
}

/** Dashed lines where something changed or a reference was replaced. */
function eventLines(one) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const line = (night, dash, name) => {
      const x = plot.valToPos(night, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (name) ctx.fillText(inert(name).slice(0, 30), x + 4, bbox.top + 12 * devicePixelRatio);
    };
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.strokeStyle = ctx.fillStyle = colour("--dim");
    one.events.forEach(({ night }) => line(night - 0.5, [4, 4]));
    one.bridges.forEach(({ night, to }) => line(night, [1, 3], `→ ${to}`));
    ctx.restore();
  };
}

function ratioOptions(one, shown, width, told) {
  const axis = axisStyle();
  const [first, last] = shownNights(one), words = axisWords(one);
  let settled = false;
  return {
    width, height: between(Math.round(width * 0.42), 240, 460), legend: { show: false }, padding: [14, 40, 0, 0],
    cursor: { y: false, drag: { x: true, y: false } },
    scales: { x: { time: false, min: first, max: last }, y: { range: (_, low, high) => { const [a, b] = [Math.min(low ?? 0, -0.1), Math.max(high ?? 0, 0.1)], room = 0.06 * (b - a); return [a - room, b + room]; } } },
    axes: [
      { ...axis, space: 90, size: 30, values: (_, splits) => splits.map((night) => (Number.isInteger(night) ? words[night] ?? "" : "")) },
      { ...axis, size: 70, values: (_, splits) => splits.map((value) => `${value > 0 ? "+" : ""}${Number(value.toFixed(3))} %`) }],
    series: [{}, ...seriesOf(shown, new Set())],
    bands: shown.map((_, number) => ({ series: [3 * number + 3, 3 * number + 2], fill: `${colour(`--s${number % 8}`)}33` })),
    hooks: {
      draw: [eventLines(one)],
      ready: [() => { settled = true; }],
      setScale: [(plot, key) => {
        if (key !== "x" || !settled) return;
        const [from, to] = [Math.max(0, Math.ceil(plot.scales.x.min)), Math.min(one.nights.length - 1, Math.floor(plot.scales.x.max))];
        const zoom = from <= 0 && to >= one.nights.length - 1 ? "" : `${from}-${to}`;
        if (from < to && zoom !== state.zoom) show({ zoom });
      }],
      setCursor: [(plot) => {
        const night = plot.cursor.idx;
        told.textContent = night === null || night === undefined ? "" : [inert(nightWords(one.nights[night])), ...shown.map(({ id }, number) => {
          const value = plot.data[3 * number + 1][night];
          return isNumber(value) ? `${inert(id)} ${percent(value / 100)}` : null;
        }).filter(Boolean)].join(" · ");
      }] },
  };
}

/** Part of the nights by button, for those who use no pointer. */
function zoomButtons(one) {
  const to = (make) => () => {
    const [first, end] = shownNights(one), last = one.nights.length - 1;
    const [from, until] = make(first, end, Math.max(1, Math.round((end - first) / 4))).map((night) => between(night, 0, last));
    if (from < until) show({ zoom: from === 0 && until === last ? "" : `${from}-${until}` });
  };
  const move = (first, end, by) => { const step = between(by, -first, one.nights.length - 1 - end); return [first + step, end + step]; };
  return el("div", { class: "keys zoom", role: "group", "aria-label": "part of the nights" },
    button("all", () => show({ zoom: "" })), button("closer", to((first, end, by) => [first + by, end - by])), button("wider", to((first, end, by) => [first - 2 * by, end + 2 * by])),
    button("earlier", to((first, end, by) => move(first, end, -by))), button("later", to((first, end, by) => move(first, end, by))));
}

function ratioChart(one) {
  const title = `${one.name}: change against ${one.points[0].reference}`;
  const told = el("p", { class: "told cursor", "aria-hidden": "true" }), keys = el("div", { class: "keys", role: "group", "aria-label": "cases in the chart" });
  const place = el("div", { class: "plot", role: "img", "aria-label": `${title}; the table below holds its points` });
  let shown = charted(one);
  const held = fitted(place, (width) => new uPlot(ratioOptions(one, shown, width, told), ratioColumns(one, shown), place));
  const drop = (key) => show({ series: new Set(shown.map((other) => other.key).filter((other) => other !== key)) });
  const rows = () => {
    const [first, last] = shownNights(one), columns = ratioColumns(one, shown);
    const cell = (night, at) => (isNumber(columns[3 * at + 1][night]) ? `${percent(columns[3 * at + 1][night] / 100)} ± ${((columns[3 * at + 3][night] - columns[3 * at + 1][night])).toFixed(2)}` : "");
    return one.nights.slice(first, last + 1).map((point, night) => [nightWords(point), ...shown.map((_, at) => cell(first + night, at))]);
  };
  const numbers = el("details", { ontoggle: () => fillNumbers() }, el("summary", {}, "the numbers"));
  const fillNumbers = () => { while (numbers.children.length > 1) numbers.lastChild.remove(); if (numbers.open) numbers.append(plainTable(title, ["point", ...shown.map(({ id }) => id)], rows(), shown.map((_, at) => at + 1))); };
  const fillKeys = () => keys.replaceChildren(...shown.map(({ key, id }, number) => button([el("span", { class: `swatch s${number}` }), `${id} ×`], () => drop(key), { class: "key", "aria-label": `leave out ${id}` })));
  const lines = () => csv([["started", "label", ...shown.flatMap(({ id }) => [`${id} change in %`, `${id} low`, `${id} high`])],
    ...one.nights.map((point, night) => [new Date(1000 * point.started).toISOString(), point.label, ...ratioColumns(one, shown).slice(1).map((column) => column[night] ?? "")])]);
  state.listeners.push((changes) => {
    if (!("series" in changes || "zoom" in changes || Object.keys(changes).length === 0)) return;
    const next = charted(one), same = next.length === shown.length && next.every((other, at) => other === shown[at]);
    shown = next;
    const [first, last] = shownNights(one), { min, max } = held.plot?.scales.x ?? {};
    if (!same || !held.plot) held.draw();
    else if (Math.ceil(min) !== first || Math.floor(max) !== last) held.plot.setScale("x", { min: first, max: last });
    fillKeys();
    fillNumbers();
  });
  fillKeys();
  return el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, title)), keys, place, told, zoomButtons(one),
    el("div", { class: "below" }, numbers, saver("CSV", `${one.name}.csv`, "text/csv", lines), pictureOf(held, title)));
}
