// Tries a page in headless Chromium: see scripts/page-in-browser.
const { chromium } = require("playwright-core");
const fs = require("fs"), os = require("os"), path = require("path"), crypto = require("crypto");

const [browserPath, page, shots] = process.argv.slice(2);
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
  const folded = await tab.$$eval("tr.fold", (rows) => rows.reduce((sum, row) => sum + Number(row.dataset.cases), 0));
  check("every case has its row, or is folded", (await count(tab, "tr.row")) + folded === all.length, [await count(tab, "tr.row"), folded]);
  await tab.fill("#search", first.id);
  check("search leaves the case", (await count(tab, "tr.row")) >= 1 && (await tab.locator("tr.row").first().innerText()).length > 0);
  await tab.locator("button.case").first().click();
  check("a row opens", (await count(tab, "tr.detail")) === 1);
  const before = await tab.locator("tbody").first().innerText();
  await tab.reload();
  await tab.waitForSelector("tr.detail");
  check("state survives a reload", (await tab.locator("tbody").first().innerText()) === before && (await tab.inputValue("#search")) === first.id);
  const link = await tab.locator("a.link").first().getAttribute("href");
  await tab.getByRole("button", { name: "clear" }).click();
  const group = data.groups.find(({ cases }) => cases.length > 0);
  await tab.selectOption("select", group.name);
  check("the group filters", (await count(tab, "tr.row")) === group.cases.length);
  await tab.getByRole("button", { name: "clear" }).click();
  await tab.locator("thead th button", { hasText: "quiet" }).first().click();
  const sorted = await tab.$$eval("tr.row", (rows) => rows.map((row) => row.id));
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
  const [kept] = await Promise.all([tab.waitForEvent("download"), tab.locator(".tools button", { hasText: "CSV" }).click()]);
  const lines = fs.readFileSync(await kept.path(), "utf8").split("\r\n");
  check("the CSV has a line a case", lines.length === all.length + 2, lines.length);
  const curves = new Set(data.groups.flatMap(({ name, curves }) => curves.map(({ chart }) => `${name} ${chart}`)));
  await tab.waitForFunction((wanted) => document.querySelectorAll(".plot canvas").length >= wanted, curves.size, { timeout: 20000 }).catch(() => {});
  check("every chart is drawn", (await count(tab, ".plot canvas")) === curves.size, [await count(tab, ".plot canvas"), curves.size]);
  await tab.keyboard.press("Tab");
  check("the keyboard gets in", await tab.evaluate(() => document.activeElement !== document.body));
  check("nothing is said on the console", said.length === 0, said);
  check("nothing is asked of a network", asked.length === 0, asked);
  await tab.close();
}

async function audit(context, scheme) {
  const { tab } = await open(context, page);
  await tab.locator("button.case").first().click();
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
  Object.assign(group.cases[0], { id: HOSTILE, title: HOSTILE, sentence: HOSTILE, evidence: [HOSTILE] });
  const file = path.join(place, "hostile.html");
  fs.writeFileSync(file, withData(html, evil));
  const { tab, said, asked } = await open(context, file);
  await tab.locator("button.case").first().click();
  await tab.locator("button", { hasText: "manual" }).first().click();
  check("no markup comes from a record", (await count(tab, "img")) === 0 && (await count(tab, "main b:text('bold')")) === 0);
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

async function pictures(launch, place) {
  for (const scheme of ["light", "dark"]) {
    for (const width of [390, 1280, 2560]) {
      const context = await launch({ colorScheme: scheme, viewport: { width, height: width === 390 ? 844 : 1200 } });
      const { tab } = await open(context, page);
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`nothing is wider than ${width} pixels`, wide <= 0, wide);
      if (shots) {
        await tab.screenshot({ path: path.join(shots, `${scheme}-${width}.png`) });
        await tab.locator("button.case").nth(1).click();
        await tab.locator("tr.detail").scrollIntoViewIfNeeded();
        await tab.screenshot({ path: path.join(shots, `${scheme}-${width}-detail.png`) });
        for (const part of ["curves", "comparison", "pairs"]) {
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
