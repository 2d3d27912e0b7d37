// The console in a browser: node test/check.mjs URL FOLDER. Needs a running collector with rows, and chromium.
//
// Opens every page in both themes, filters, zooms, drills, follows live traffic, reloads a shared address. Fails on any error in
// the browser's console and on any violation that axe finds. Screenshots go to FOLDER.
import { readFileSync, mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [url, folder] = process.argv.slice(2);
if (url === undefined || folder === undefined) {
  console.error("usage: node test/check.mjs URL FOLDER");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const problems = [], done = [];
const expect = (what, holds) => { (holds ? done : problems).push(what); };

async function open(theme, path) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: theme });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => problems.push(`page: ${error.message}`));
  await page.goto(url + path, { waitUntil: "load" });
  await page.waitForSelector("main");
  return page;
}

async function look(page, name) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  if (wide) problems.push(`${name}: the page is wider than the window`);
  await page.waitForTimeout(600);
  await page.screenshot({ path: `${folder}/${name}.png` });
  // The policy of the page allows no scripts but its own: axe is evaluated by the browser's protocol.
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const violation of found.violations) problems.push(`axe, ${name}: ${violation.id}: ${violation.help}: ${violation.nodes[0]?.html.slice(0, 120)}`);
  done.push(name);
}

const pages = [
  ["stacked", "/?v=1&q=SrcAddr&from=-15m"], ["bands", "/?v=1&q=ExporterName&m=packets&g=line&from=-15m"],
  ["heatmap", "/?v=1&q=DstAddr&g=heatmap&from=-15m"], ["sankey", "/?v=1&q=ExporterName,InIfName,Outcome&g=sankey&from=-15m"],
  ["rows", "/?v=1&q=DstPort&g=table&raw=1&from=-15m"], ["live", "/?v=1&q=Format&m=packets&live=1"],
  ["drops", "/?v=1&p=drops"], ["exporters", "/?v=1&p=exporters"], ["health", "/?v=1&p=health"], ["alerts", "/?v=1&p=alerts"],
];
for (const theme of ["light", "dark"]) {
  for (const [name, path] of pages) {
    const page = await open(theme, path);
    await page.waitForSelector("main table:not(.u-legend), main .card");
    if (name === "drops") await page.waitForFunction(() => !document.body.textContent.includes("Loading"));
    if (name === "sankey") await page.waitForSelector(".sankey path");
    await look(page, `${name}-${theme}`);
    await page.close();
  }
}

// Filter by keyboard, drill by a row, zoom by the mouse, and share the address.
const page = await open("light", "/?v=1&q=DstAddr&from=-15m");
await page.waitForSelector(".scroll tbody tr");
await page.keyboard.press("/");
await page.keyboard.type("Proto = ud");
await page.waitForTimeout(300);
await page.keyboard.type("p");
await page.keyboard.press("Enter");
await page.waitForFunction(() => location.search.includes("f=Proto"));
expect("the filter is in the address", true);
await page.keyboard.press("Escape");
await page.waitForSelector("button[aria-label^='Only']");
await page.click("button[aria-label^='Only']");
await page.waitForFunction(() => location.search.includes("DstAddr+%3D") || location.search.includes("DstAddr%20%3D"));
expect("a row drills down", true);
await page.waitForSelector(".u-over");
const area = await page.locator(".u-over").boundingBox();
await page.mouse.move(area.x + area.width * 0.3, area.y + 50);
await page.mouse.down();
await page.mouse.move(area.x + area.width * 0.7, area.y + 60, { steps: 5 });
await page.mouse.up();
await page.waitForFunction(() => /from=\d+/.test(location.search));
expect("a selection zooms", true);
const shared = await page.evaluate(() => location.href);
await page.reload();
await page.waitForSelector(".scroll tbody tr");
expect("a shared address opens the same view", (await page.evaluate(() => location.href)) === shared && (await page.inputValue("input[aria-label=Filter]")).includes("Proto = udp"));
await page.fill("input[aria-label=Filter]", "SrcAS >");
await page.waitForSelector("p.error:not(:empty)");
expect("a wrong filter is explained", (await page.textContent("p.error:not(:empty)")).length > 5);
await page.click("button[aria-label='Use dark colours']");
expect("the theme changes", (await page.evaluate(() => document.documentElement.dataset["theme"])) === "dark");
await browser.close();
for (const problem of problems) console.error(problem);
console.log(JSON.stringify({ checked: done.length, problems: problems.length }));
process.exit(problems.length === 0 ? 0 : 1);
