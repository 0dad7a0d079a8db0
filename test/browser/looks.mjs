// How the pages look: nothing sticks out on a phone, every text can be read on
// its ground, in daylight and in the dark. With SHOTS=folder the pages are kept
// as pictures.
import { after, afterEach, before, test } from "node:test";
import assert from "node:assert/strict";
import { join } from "node:path";
import { Demo, hook, languages, payBy, phase } from "./demo.mjs";

let demo;
before(async () => { demo = await Demo.start(); });
after(() => demo?.stop());
afterEach(() => demo.checkProblems());

// faint lists the texts of a page whose contrast is below 4.5 to 1.
function faint() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] === 255) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("noscript, svg, :disabled")) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${e.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}

async function check(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, name + ".png"), fullPage: true });
  const { inner, scroll } = await page.evaluate(() => ({ inner: innerWidth, scroll: document.documentElement.scrollWidth }));
  assert.ok(scroll <= inner, `${name}: ${scroll} px wide on ${inner}`);
  assert.deepEqual(await page.evaluate(faint), [], name);
}

for (const { lang, locale } of languages) {
  for (const [width, colorScheme] of [[360, "light"], [360, "dark"], [1100, "light"], [1100, "dark"]]) {
    test(`${lang}: every page at ${width} px, ${colorScheme}`, async () => {
      const name = (page) => `${lang}-${width}-${colorScheme}-${page}`;
      const page = await (await demo.device({ locale, colorScheme, mayFail: true, viewport: { width, height: 800 } })).newPage();
      await page.goto(demo.shop);
      await check(page, name("shop"));
      await page.locator(hook("currency")).selectOption("CNY");
      await page.locator(hook("make-order")).click();
      await page.locator(hook("verdict")).waitFor();
      await check(page, name("story"));
      const checkout = await page.locator(hook("checkout")).getAttribute("href");
      const story = page.url();

      await page.goto(checkout);
      assert.equal(await page.getAttribute("html", "lang"), lang === "zh" ? "zh-CN" : "en");
      await check(page, name("ready"));
      await payBy(page, "card-declined");
      await phase(page, "declined");
      await check(page, name("declined"));
      await payBy(page, "alipay-qr");
      await phase(page, "waiting");
      await page.locator(hook("other-way")).locator("summary").click();
      await payBy(page, "card-pays");
      await page.locator(hook("free-in")).waitFor();
      await page.locator(hook("other-way")).locator("summary").click();
      await check(page, name("waiting"));
      await page.goto(await page.locator(hook("open-code")).getAttribute("href"));
      await page.locator("summary").click();
      await check(page, name("payer"));
      await page.goto(story);
      await page.locator(hook("code")).waitFor();
      await check(page, name("story-waiting"));
      await page.goto(await page.locator(hook("open-code")).getAttribute("href"));
      await page.locator("button[value=paid]").click();
      await page.goto(checkout);
      await phase(page, "paid");
      await check(page, name("paid"));
      await page.goto(story);
      await page.locator(`${hook("verdict")}[data-verdict="verdict-one"]`).waitFor();
      await check(page, name("story-paid"));
    });
  }
}
