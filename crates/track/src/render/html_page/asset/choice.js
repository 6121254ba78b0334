// Which points of a history are shown: those of one machine, or of one kernel and its settings.

/** The choice that the address asks for, if this history has it. */
function choiceOf(history) {
  const wanted = (names, name) => (name === "" ? null : names.indexOf(name));
  const [machine, software] = [wanted(history.machines, state.machine), wanted(history.software, state.software)];
  return history.choices.find((choice) => choice.machine === machine && choice.software === software);
}

const isChosen = (point, choice) => !choice || ((choice.machine ?? point.machine) === point.machine && (choice.software ?? point.software) === point.software);

/** A box with the names of one kind; those that make no choice with the other box cannot be taken. */
function chooser(history, kind, told) {
  const other = kind === "machine" ? "software" : "machine", names = kind === "machine" ? history.machines : history.software;
  const box = el("select", { "aria-label": `${told} of the history ${history.name}`, onchange: () => show({ [kind]: box.value, zoom: "" }) });
  const fill = () => {
    const others = (kind === "machine" ? history.software : history.machines).indexOf(state[other]);
    const can = (at) => history.choices.some((choice) => choice[kind] === at && choice[other] === (state[other] === "" ? null : others));
    const options = names.map((name, at) => el("option", { value: name, disabled: !can(at) }, inert(name)));
    box.replaceChildren(el("option", { value: "" }, `every ${told}`), ...options);
    box.value = names.includes(state[kind]) ? state[kind] : "";
  };
  fill();
  return history.choices.some((choice) => choice[kind] !== null) && { box, fill };
}

/** A history with the boxes to choose by, drawn anew for each choice. */
function chosenHistory(history, number) {
  const boxes = [chooser(history, "machine", "machine"), chooser(history, "software", "kernel")].filter(Boolean);
  const place = el("div");
  let mine = [];
  const draw = () => {
    state.listeners = state.listeners.filter((listener) => !mine.includes(listener));
    const before = state.listeners.length;
    place.replaceChildren(el("div", {}, oneHistory(history, number)));
    mine = state.listeners.slice(before);
  };
  draw();
  let drawn = choiceOf(history);
  if (boxes.length > 0) {
    state.listeners.unshift(() => {
      const choice = choiceOf(history);
      boxes.forEach(({ fill }) => fill());
      if (choice !== drawn) { drawn = choice; draw(); }
    });
  }
  return el("section", { class: "history" }, el("h3", {}, history.name),
    boxes.length > 0 && el("div", { class: "tools", role: "group", "aria-label": `points of the history ${history.name}` }, boxes.map(({ box }) => box)), place);
}
