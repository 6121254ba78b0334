// Tries a page in headless Chromium: see scripts/page-in-browser.
const { chromium } = require("playwright-core");
const fs = require("fs"), os = require("os"), path = require("path"), crypto = require("crypto");

const [browserPath, page, shots, ...others] = process.argv.slice(2);
const HOSTILE = `</script><img src=x onerror="document.title='owned'">\u202e\u2066 "quoted' & <b>bold</b> \u05e9\u05dc\u05d5\u05dd ${"x".repeat(10000)}`;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
let failed = 0, done = 0;

function check(what, holds, found = "") {
  done += 1;
  if (holds) return;
  failed += 1;
  console.error(`FAILED: ${what}${found === "" ? "" : `: ${JSON.stringify(found).slice(0, 900)}`}`);
}

/** The text between two marks, of which the first occurs once. */
function between(text, from, to) {
  const start = text.indexOf(from) + from.length;
  return text.slice(start, text.indexOf(to, start));
}

const MARK = '<script type="application/json" id="data">';
const dataOf = (html) => JSON.parse(between(html, MARK, "</script>"));

/** The same page with other data, escaped as the program escapes them. */
function withData(html, data) {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  return html.replace(between(html, MARK, "</script>"), () => json);
}

async function open(context, file, fragment = "") {
  const tab = await context.newPage(), said = [], asked = [];
  tab.on("console", (message) => said.push(message.text()));
  tab.on("pageerror", (error) => said.push(String(error)));
  tab.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) asked.push(request.url()); });
  await tab.goto(`file://${file}${fragment}`);
  await tab.waitForSelector("table.cases tbody tr");
  return { tab, said, asked };
}

const count = (tab, what) => tab.locator(what).count();

async function reader(context, data) {
  const { tab, said, asked } = await open(context, page);
  const all = data.groups.flatMap(({ cases }) => cases), first = all.find(({ figure }) => figure);
  const settled = () => tab.waitForFunction(() => { const rows = document.querySelectorAll("#cases tr").length, same = rows === window.seen; window.seen = rows; return same; }, null, { polling: 250 });
  await settled();
  const folded = await tab.$$eval("tr.fold", (rows) => rows.reduce((sum, row) => sum + Number(row.dataset.cases), 0));
  check("every case has its row, or is folded", (await count(tab, "#cases tr.row")) + folded === all.length, [await count(tab, "#cases tr.row"), folded]);
  await tab.fill("#search", first.id);
  check("search leaves the case", (await count(tab, "#cases tr.row")) >= 1 && (await tab.locator("#cases tr.row").first().innerText()).length > 0);
  await tab.locator("#cases button.case").first().click();
  check("a row opens", (await count(tab, "tr.detail")) === 1);
  const before = await tab.locator("#cases tbody").innerText();
  await tab.reload();
  await tab.waitForSelector("tr.detail");
  check("state survives a reload", (await tab.locator("#cases tbody").innerText()) === before && (await tab.inputValue("#search")) === first.id);
  const link = await tab.locator("a.link").first().getAttribute("href");
  await tab.getByRole("button", { name: "clear" }).click();
  const group = data.groups.find(({ cases }) => cases.length > 0);
  await tab.selectOption("select[aria-label=group]", group.name);
  await settled();
  check("the group filters", (await count(tab, "#cases tr.row")) === group.cases.length);
  await tab.getByRole("button", { name: "clear" }).click();
  await tab.locator("#cases thead th button", { hasText: "quiet" }).first().click();
  await settled();
  const sorted = await tab.$$eval("#cases tr.row", (rows) => rows.map((row) => row.id));
  const figures = new Map(all.map(({ id, figure }) => [`case:${id}`, figure?.[0] ?? Infinity]));
  check("the head sorts", sorted.every((id, at) => at === 0 || figures.get(sorted[at - 1]) <= figures.get(id)), sorted.slice(0, 5));
  const linked = await open(context, page, link);
  check("a link opens its row", (await count(linked.tab, "tr.detail")) === 1);
  check("and it is in sight", await linked.tab.locator("tr.detail").evaluate((row) => row.getBoundingClientRect().top < innerHeight));
  await linked.tab.close();
  const manual = tab.locator("button", { hasText: "manual" });
  await tab.getByRole("button", { name: "clear" }).click();
  if ((await manual.count()) > 0) {
    await manual.first().click();
    check("a manual opens", (await tab.locator("aside.panel").innerText()).length > 200);
    await tab.keyboard.press("Escape");
    check("and closes", !(await tab.locator("aside.panel").isVisible()));
  }
  const [kept] = await Promise.all([tab.waitForEvent("download"), tab.locator("#cases .tools button", { hasText: "CSV" }).click()]);
  const lines = fs.readFileSync(await kept.path(), "utf8").split("\r\n");
  check("the CSV has a line a case", lines.length === all.length + 2, lines.length);
  const curves = new Set(data.groups.flatMap(({ name, curves }) => curves.map(({ chart }) => `${name} ${chart}`)));
  await tab.waitForFunction((wanted) => document.querySelectorAll("#curves .plot canvas").length >= wanted, curves.size, { timeout: 20000 }).catch(() => {});
  check("every chart is drawn", (await count(tab, "#curves .plot canvas")) === curves.size, [await count(tab, "#curves .plot canvas"), curves.size]);
  const papers = data.groups.map(({ paper }) => paper).filter(Boolean), pictured = papers.flatMap((paper) => paper.figures).length;
  await tab.waitForFunction((wanted) => document.querySelectorAll("#paper .plot canvas").length >= wanted, pictured, { timeout: 20000 }).catch(() => {});
  check("the paper's tables and figures are there", (await count(tab, "#paper figure.paper")) === papers.flatMap(({ tables }) => tables).length && (await count(tab, "#paper .plot canvas")) === pictured, pictured);
  await tab.keyboard.press("Tab");
  check("the keyboard gets in", await tab.evaluate(() => document.activeElement !== document.body));
  check("nothing is said on the console", said.length === 0, said);
  check("nothing is asked of a network", asked.length === 0, asked);
  await tab.close();
}

const keysOf = (tab) => tab.$$eval("#history .keys:not(.zoom) button", (keys) => keys.map((key) => key.textContent));
const zoomOf = async (tab) => new URLSearchParams(new URL(tab.url()).hash.slice(1)).get("zoom");

/** A history as a reader uses it: an event is shown, the chart is zoomed, cases are searched and picked, all of it survives. */
async function historian(context, data) {
  const [history] = data.histories ?? [];
  if (!history) return;
  const { tab, said, asked } = await open(context, page), nights = history.points.filter(({ bridge_to }) => !bridge_to).length;
  await tab.waitForSelector("#history .plot canvas");
  check("every event is listed", (await count(tab, ".history .events > li")) === data.histories.reduce((sum, { events }) => sum + events.length, 0));
  const shown = tab.locator("#history .history").first();
  if (history.events.length > 0) {
    await shown.locator(".events > li button").first().click();
    const [newest] = [...history.events].sort((a, b) => b.at - a.at);
    const wanted = newest.moved.slice(0, 8).map(([at]) => history.series[at].id);
    check("an event shows its cases", wanted.every((id, at) => at < 8) && (await keysOf(tab)).length === wanted.length, [await keysOf(tab), wanted]);
    check("and the nights around it", nights < 42 || /^\d+-\d+$/.test((await zoomOf(tab)) ?? ""), tab.url());
    const [before, zoom] = [await keysOf(tab), await zoomOf(tab)];
    await tab.reload();
    await tab.waitForSelector("#history .plot canvas");
    check("both survive a reload", JSON.stringify(await keysOf(tab)) === JSON.stringify(before) && (await zoomOf(tab)) === zoom, [before, await keysOf(tab), tab.url()]);
    await shown.getByRole("button", { name: "all", exact: true }).click();
  }
  const within = () => tab.$$eval("#history tbody tr td:nth-child(5)", (cells) => cells.map((cell) => cell.textContent).join());
  await shown.locator(".u-over").scrollIntoViewIfNeeded();
  const whole = await within(), box = await shown.locator(".u-over").boundingBox();
  await tab.mouse.move(box.x + 0.3 * box.width, box.y + 40);
  await tab.mouse.down();
  await tab.mouse.move(box.x + 0.6 * box.width, box.y + 60, { steps: 8 });
  await tab.mouse.up();
  const [from, to] = ((await zoomOf(tab)) ?? "0-0").split("-").map(Number);
  check("dragging over the chart zooms", Math.abs(from - 0.3 * (nights - 1)) <= 2 && Math.abs(to - 0.6 * (nights - 1)) <= 2, [from, to, nights]);
  check("the table tells of what is shown", (await within()) !== whole);
  await shown.locator("details", { hasText: "the numbers" }).locator("summary").click();
  check("the numbers are those of what is shown", (await shown.locator("table.plain tbody tr").count()) === to - from + 1, [from, to]);
  await shown.getByRole("button", { name: "wider" }).click();
  await shown.getByRole("button", { name: "later" }).click();
  check("buttons move what is shown", (await zoomOf(tab)) !== `${from}-${to}`, await zoomOf(tab));
  await shown.getByRole("button", { name: "all", exact: true }).click();
  check("and show all again", (await zoomOf(tab)) === null && (await within()) === whole);
  const one = history.series.at(-1).id;
  await shown.locator("input[type=search]").fill(one);
  const picked = shown.locator("tr.row button.pick").first();
  check("search leaves the case", (await picked.innerText()).startsWith(one));
  const was = await keysOf(tab);
  await picked.click();
  check("a case is picked", (await keysOf(tab)).length !== was.length && (await picked.getAttribute("aria-pressed")) === String((await keysOf(tab)).length > was.length));
  const [kept] = await Promise.all([tab.waitForEvent("download"), shown.locator(".chart button", { hasText: "CSV" }).click()]);
  check("the CSV has a line a night", fs.readFileSync(await kept.path(), "utf8").split("\r\n").length === nights + 2);
  const [drawn] = await Promise.all([tab.waitForEvent("download"), shown.locator(".chart button", { hasText: "PNG" }).click()]);
  check("the picture is one", fs.readFileSync(await drawn.path()).subarray(1, 4).toString() === "PNG");
  // Frames while the pointer drags over the chart and while buttons zoom, some of each.
  const frames = tab.evaluate(() => new Promise((done) => {
    const at = [], next = (now) => { at.push(now); at.length < 90 ? requestAnimationFrame(next) : done(at); };
    requestAnimationFrame(next);
  }));
  for (let round = 0; round < 6; round += 1) {
    await tab.mouse.move(box.x + 20, box.y + 50);
    await tab.mouse.move(box.x + box.width - 20, box.y + 60, { steps: 12 });
    await shown.getByRole("button", { name: round % 2 ? "wider" : "closer" }).click();
  }
  const moments = await frames, gaps = moments.slice(1).map((now, at) => now - moments[at]).sort((a, b) => a - b);
  console.log(`history of ${nights} points × ${history.series.length} cases: frames of ${gaps[44].toFixed(1)} ms in the middle, ${gaps[84].toFixed(1)} ms at the 95th percentile while zooming`);
  check("nothing is said on the console, nothing asked of a network", said.length + asked.length === 0, [said, asked]);
  await tab.close();
}

/** A history of several machines: one is chosen, and everything shows its points alone. */
async function choosing(context, data) {
  const [history] = data.histories ?? [];
  if (!history || history.machines.length < 2) return;
  const { tab, said, asked } = await open(context, page), shown = tab.locator("#history .history").first();
  const told = async () => Number((await shown.locator("p.dim").first().innerText()).match(/^(\d+) points/)[1]);
  const events = () => shown.locator(".events > li").count();
  const box = shown.locator("select").first(), [name] = history.machines, all = await told();
  const choice = history.choices.find(({ machine, software }) => machine === 0 && software === null);
  const wanted = history.points.filter(({ machine, bridge_to }) => machine === 0 && !bridge_to).length;
  await box.selectOption({ index: 1 });
  check("a machine that is chosen has its points", (await told()) === wanted && wanted < all, [await told(), wanted, all]);
  check("and the events that are found in them", (await events()) === choice.events.length, [await events(), choice.events.length]);
  check("and a chart", (await shown.locator(".plot canvas").count()) === 1);
  const [kept] = await Promise.all([tab.waitForEvent("download"), shown.locator(".chart button", { hasText: "CSV" }).click()]);
  check("and a CSV", fs.readFileSync(await kept.path(), "utf8").split("\r\n").length === wanted + 2);
  await tab.reload();
  await tab.waitForSelector("#history .plot canvas");
  check("the choice survives a reload", (await box.inputValue()) === name && (await told()) === wanted, [await box.inputValue(), tab.url()]);
  if (history.software.length > 1) {
    const other = shown.locator("select").nth(1), can = other.locator("option:not([disabled])");
    await other.selectOption({ index: 1 + history.choices.find(({ machine, software }) => machine === 0 && software !== null).software });
    check("a kernel of that machine is chosen beside it", (await told()) < wanted && (await can.count()) > 1, await told());
    await other.selectOption({ index: 0 });
  }
  await box.selectOption({ index: 0 });
  check("every machine is shown again", (await told()) === all && (await events()) === history.events.length);
  check("choosing says nothing on the console and asks nothing of a network", said.length + asked.length === 0, [said, asked]);
  await tab.close();
}

/** Size and first paint of further pages. */
async function sizes(context, files) {
  for (const file of files) {
    const start = Date.now(), { tab, said } = await open(context, file);
    const paint = await tab.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
    console.log(`${path.basename(path.dirname(file))}: ${(fs.statSync(file).size / 1e6).toFixed(2)} MB, first paint ${paint.toFixed(0)} ms, its table after ${Date.now() - start} ms`);
    check(`nothing is said by ${file}`, said.length === 0, said);
    await tab.close();
  }
}

async function audit(context, scheme) {
  const { tab } = await open(context, page);
  await tab.locator("#cases button.case").first().click();
  // Run by the browser's debugger, which the page's own policy does not hold back.
  await tab.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await tab.evaluate(() => axe.run());
  check(`axe-core finds nothing (${scheme})`, violations.length === 0, violations.map(({ id, help, nodes }) => [id, help, nodes.length, nodes[0].html.slice(0, 160), nodes[0].failureSummary?.slice(0, 200)]));
  await tab.close();
}

async function hostile(context, html, data, place) {
  const evil = structuredClone(data), [group] = evil.groups;
  Object.assign(evil, { run: HOSTILE, tool: HOSTILE, machine: [["processor", HOSTILE], [HOSTILE, HOSTILE]], findings: [[HOSTILE, HOSTILE, HOSTILE]], mitigations: { [HOSTILE]: HOSTILE } });
  Object.assign(group, { name: HOSTILE, manual: `# ${HOSTILE}\n\n${HOSTILE}\n| ${HOSTILE} |\n`, notes: [HOSTILE] });
  for (const history of evil.histories ?? []) {
    Object.assign(history, { name: HOSTILE, notes: [HOSTILE], machines: history.machines.map((_, at) => `${HOSTILE}${at}`), software: history.software.map((_, at) => `${HOSTILE}${at}`) });
    history.points.forEach((point) => Object.assign(point, { label: HOSTILE, reference: HOSTILE }));
    history.series.forEach((series, at) => { series.id = `${HOSTILE}${at}`; });
    history.events.forEach((event) => { event.profile = [[HOSTILE, HOSTILE, HOSTILE]]; });
  }
  for (const { paper } of evil.groups.filter(({ paper }) => paper)) {
    paper.tables.forEach((table) => Object.assign(table, { title: HOSTILE, head: table.head.map(() => HOSTILE), rows: [table.rows[0].map(() => HOSTILE)], notes: [HOSTILE] }));
    paper.figures.forEach(({ curves }) => curves.forEach((curve) => Object.assign(curve, { title: HOSTILE, chart: HOSTILE, parameter: HOSTILE })));
  }
  evil.others = [["javascript:document.title='owned'", HOSTILE], ["runs/a.html", HOSTILE]];
  Object.assign(group.cases[0], { id: HOSTILE, title: HOSTILE, sentence: HOSTILE, evidence: [HOSTILE] });
  const file = path.join(place, "hostile.html");
  fs.writeFileSync(file, withData(html, evil));
  const { tab, said, asked } = await open(context, file);
  await tab.locator("#cases button.case").first().click();
  await tab.locator("button", { hasText: "manual" }).first().click();
  check("no markup comes from a record", (await count(tab, "img")) === 0 && (await count(tab, "main b:text('bold')")) === 0);
  check("a link leads to a page beside this one only", (await tab.$$eval("header a", (links) => links.map((link) => link.getAttribute("href")).join())) === "runs/a.html");
  check("no script comes from a record", (await tab.title()) !== "owned");
  check("no mark turns the text around it", !/[\u202a-\u202e\u2066-\u2069]/.test(await tab.locator("body").innerText()));
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check("a name of 10 000 characters does not widen the page", wide <= 0, wide);
  check("nothing is said and nothing asked", said.length + asked.length === 0, [said, asked]);
  await tab.close();
}

/** A page of 3 000 rows is shown and searched in reasonable time. */
async function large(context, html, data, place) {
  const many = structuredClone(data), [group] = many.groups.filter(({ cases }) => cases.some(({ figure }) => figure));
  const one = group.cases.find(({ figure }) => figure);
  many.groups = [{ ...group, curves: [], cases: Array.from({ length: 3000 }, (_, at) => ({ ...one, id: `${one.id}/${at}` })) }];
  const file = path.join(place, "large.html");
  fs.writeFileSync(file, withData(html, many));
  const { tab } = await open(context, file);
  const paint = await tab.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  const search = await tab.evaluate(() => { const start = performance.now(), box = document.getElementById("search"); box.value = "299"; box.dispatchEvent(new Event("input")); document.body.offsetHeight; return performance.now() - start; });
  console.log(`3000 cases: ${(fs.statSync(file).size / 1e6).toFixed(2)} MB, first paint ${paint.toFixed(0)} ms, search ${search.toFixed(0)} ms`);
  await tab.close();
}

/** The words within ids that a line ends in: a line of an id ends behind a slash or a hyphen. */
function brokenWords() {
  const broken = [];
  for (const cell of document.querySelectorAll("th.id")) {
    const letters = [], walk = document.createTreeWalker(cell.querySelector("button") ?? cell, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      for (let at = 0; at < node.length; at += 1) {
        const range = document.createRange();
        range.setStart(node, at), range.setEnd(node, at + 1);
        letters.push({ letter: node.data[at], top: range.getBoundingClientRect().top });
      }
    }
    const within = letters.some(({ top }, at) => at > 0 && top > letters[at - 1].top + 4 && !"/- ".includes(letters[at - 1].letter));
    if (within) broken.push(cell.textContent);
  }
  return broken;
}

async function pictures(launch, place) {
  for (const scheme of ["light", "dark"]) {
    for (const width of [390, 1280, 2560]) {
      const context = await launch({ colorScheme: scheme, viewport: { width, height: width === 390 ? 844 : 1200 } });
      const { tab } = await open(context, page);
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`nothing is wider than ${width} pixels`, wide <= 0, wide);
      const broken = await tab.evaluate(brokenWords);
      check(`no id breaks inside a word at ${width} pixels`, broken.length === 0, broken.slice(0, 3));
      if (shots) {
        await tab.screenshot({ path: path.join(shots, `${scheme}-${width}.png`) });
        await tab.locator("#cases button.case").nth(1).click();
        await tab.locator("tr.detail").scrollIntoViewIfNeeded();
        await tab.screenshot({ path: path.join(shots, `${scheme}-${width}-detail.png`) });
        for (const part of ["history", "curves", "comparison", "pairs"]) {
          if ((await count(tab, `#${part}`)) === 0) continue;
          await tab.locator(`#${part}`).evaluate((element) => element.scrollIntoView());
          await tab.screenshot({ path: path.join(shots, `${scheme}-${width}-${part}.png`) });
        }
        if (width === 1280 && scheme === "light") {
          await tab.locator("button.small", { hasText: "manual" }).first().click();
          await tab.screenshot({ path: path.join(shots, "manual.png") });
          await tab.keyboard.press("Escape");
          await tab.pdf({ path: path.join(shots, "print.pdf"), format: "A4" });
        }
      }
      await context.close();
    }
  }
}

(async () => {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "syscost-page-"));
  const html = fs.readFileSync(page, "utf8"), data = dataOf(html);
  const opened = [];
  const launch = async (options) => {
    const profile = path.join(place, crypto.randomUUID());
    const context = await chromium.launchPersistentContext(profile, { executablePath: browserPath, headless: true, args: FLAGS, acceptDownloads: true, ...options });
    opened.push(context);
    return context;
  };
  try {
    if (shots) fs.mkdirSync(shots, { recursive: true });
    console.log(`${data.groups.flatMap(({ cases }) => cases).length} cases: ${(html.length / 1e6).toFixed(2)} MB`);
    for (const colorScheme of ["light", "dark"]) {
      const context = await launch({ colorScheme, viewport: { width: 1280, height: 900 } });
      if (colorScheme === "light") {
        await reader(context, data);
        await historian(context, data);
        await choosing(context, data);
        await sizes(context, others);
        await hostile(context, html, data, place);
        await large(context, html, data, place);
      }
      await audit(context, colorScheme);
      await context.close();
    }
    await pictures(launch, place);
  } finally {
    for (const context of opened) await context.close().catch(() => {});
    fs.rmSync(place, { recursive: true, force: true });
  }
  console.log(failed === 0 ? `${done} checks hold` : `${failed} of ${done} checks fail`);
  process.exitCode = failed === 0 ? 0 : 1;
})();
