// A group's manual: the Markdown that `syscost explain` prints, as elements.

/** Text with `code`, **bold** and *emphasis* in it. */
function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith("`")) return el("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**")) return el("strong", {}, part.slice(2, -2));
    if (part.length > 2 && /^\*[^*]/.test(part) && part.endsWith("*")) return el("em", {}, part.slice(1, -1));
    return part;
  });
}

function markdownTable(lines) {
  const cells = (line) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim());
  const rows = lines.filter((line) => !/^\|[\s|:-]+\|?\s*$/.test(line)).map(cells);
  const [head, ...body] = rows;
  return plainTable("a table of the manual", head.map(inline), body.map((row) => row.map(inline)));
}

/** The elements of a manual. */
function markdown(text) {
  const made = [], lines = text.split("\n");
  const take = (is) => {
    const taken = [];
    while (lines.length > 0 && is(lines[0])) taken.push(lines.shift());
    return taken;
  };
  const plain = (line) => line.trim() !== "" && !/^(#|\||```|\* |- )/.test(line);
  while (lines.length > 0) {
    const line = lines[0];
    if (line.startsWith("```")) {
      lines.shift();
      const code = take((next) => !next.startsWith("```"));
      lines.shift();
      made.push(el("pre", { tabindex: "0" }, code.join("\n")));
    } else if (line.startsWith("#")) made.push(el("h3", {}, inline(lines.shift().replace(/^#+\s*/, ""))));
    else if (line.startsWith("|")) made.push(markdownTable(take((next) => next.startsWith("|"))));
    else if (/^(\* |- )/.test(line)) {
      const items = [];
      while (lines.length > 0 && /^(\* |- )/.test(lines[0])) items.push([lines.shift().slice(2), ...take(plain)].join(" "));
      made.push(el("ul", {}, items.map((item) => el("li", {}, inline(item)))));
    } else if (plain(line)) made.push(el("p", {}, inline(take(plain).join(" "))));
    else lines.shift();
  }
  return made;
}

/** The panel beside the numbers. */
function manualPanel() {
  const title = el("h2", { tabindex: "-1" }), text = el("div", { class: "prose" });
  let shown = "", back = null;
  const close = () => { show({ manual: "" }); back?.focus(); };
  const panel = el("aside", { class: "panel", hidden: true, "aria-label": "manual" },
    el("div", { class: "bar" }, title, button("close", close)), text);
  panel.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  const update = () => {
    const group = data.groups.find(({ name, manual }) => name === state.manual && manual);
    panel.hidden = !group;
    document.body.classList.toggle("beside", Boolean(group));
    const name = group?.name ?? "";
    if (name !== shown && group) {
      back = document.activeElement;
      title.replaceChildren(inert(group.name));
      text.replaceChildren(...markdown(group.manual));
      panel.scrollTop = 0;
      title.focus({ preventScroll: true });
    }
    shown = name;
  };
  state.listeners.push(update);
  return { panel, update };
}
