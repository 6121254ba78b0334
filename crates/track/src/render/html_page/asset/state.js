// What is shown lives in the fragment of the address, so that a link shows the same and a reload changes nothing.

const state = { listeners: [], open: new Set(), series: new Set(), seek: "", zoom: "", machine: "", software: "", search: "", group: "", outcome: "", sort: "", down: false, manual: "" };
const WORDS = ["search", "group", "outcome", "sort", "manual", "seek", "zoom", "machine", "software"];

function read() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const word of WORDS) state[word] = asked.get(word) ?? "";
  state.down = asked.get("down") === "1";
  state.open = new Set(asked.getAll("case"));
  state.series = new Set(asked.getAll("series"));
}

function fragment(of) {
  const parts = new URLSearchParams();
  for (const word of WORDS) if (of[word]) parts.set(word, of[word]);
  if (of.down) parts.set("down", "1");
  for (const id of of.open ?? []) parts.append("case", id);
  for (const id of of.series ?? []) parts.append("series", id);
  return `#${parts}`;
}

/** Changes what is shown. */
function show(changes) {
  Object.assign(state, changes);
  history.replaceState(null, "", fragment(state));
  tell(changes);
}

/** Tells everyone who is still there: one of them may draw a part of the page anew. */
function tell(changes) {
  for (const listener of [...state.listeners]) if (state.listeners.includes(listener)) listener(changes);
}

/** A link that shows one case and nothing else. */
const linkTo = (id) => fragment({ open: [id] });

addEventListener("hashchange", () => {
  read();
  tell({});
  arrive();
});

/** Goes to the case that a link names. */
function arrive() {
  const [first] = state.open;
  if (first === undefined) return;
  document.querySelector("#cases tbody")?.rest();
  document.getElementById(`case:${first}`)?.scrollIntoView({ block: "center" });
}
