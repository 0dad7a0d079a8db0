// A running `payonce dev` with a browser in front of it. Every page that is
// opened here is watched: it may log no error, break no policy of its own, and
// never say that a payment failed.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export const languages = [
  { lang: "en", locale: "en-US", confirming: "please do not pay again" },
  { lang: "zh", locale: "zh-CN", confirming: "请勿重复付款" },
];

// patience is for what ends by itself, on a machine that is busy.
export const patience = 60_000;

export const hook = (name) => `[data-test="${name}"]`;

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export class Demo {
  problems = [];

  static async start() {
    const d = new Demo();
    d.folder = await mkdtemp(join(tmpdir(), "payonce-browser-"));
    d.process = spawn(process.env.PAYONCE, ["dev", "--addr", "127.0.0.1:0", "--sim", "127.0.0.1:0", "--data", d.folder], { stdio: ["ignore", "pipe", "pipe"] });
    d.log = "";
    d.process.stderr.on("data", (text) => { d.log = (d.log + text).slice(-20_000); });
    d.ended = new Promise((done) => d.process.once("close", done));
    const line = await Promise.race([
      new Promise((done) => createInterface({ input: d.process.stdout }).once("line", done)),
      d.ended.then(() => { throw new Error("payonce dev has ended:\n" + d.log); }),
    ]);
    Object.assign(d, JSON.parse(line));
    d.browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
    return d;
  }

  async stop() {
    await this.browser?.close();
    this.process.kill("SIGTERM");
    await this.ended;
    await rm(this.folder, { recursive: true, force: true });
  }

  // device is a browser of its own: other cookies, other cache, own language.
  // expected names console errors that the test brings about itself.
  async device({ locale, expected, mayFail, ...options }) {
    const context = await this.browser.newContext({ locale, viewport: { width: 1100, height: 800 }, ...options });
    context.setDefaultTimeout(patience);
    const report = (page, what) => { if (!expected?.test(what)) this.problems.push(`${page.url()}: ${what}`); };
    context.on("page", (page) => {
      page.on("console", (m) => { if (["error", "warning"].includes(m.type())) report(page, m.text()); });
      page.on("pageerror", (e) => report(page, String(e)));
    });
    if (options.javaScriptEnabled !== false) {
      await context.exposeBinding("tellTest", ({ page }, what) => report(page, what));
      await context.addInitScript(watch, { mayFail: mayFail ?? false });
    }
    return context;
  }

  // checkProblems fails with what the pages of a test have done wrong.
  checkProblems() {
    const found = this.problems.splice(0);
    assert.deepEqual(found, [], "pages have misbehaved");
  }

  async call(base, path, body) {
    const headers = { Authorization: "Bearer " + this.api_key, "Content-Type": "application/json" };
    const answer = await fetch(base + path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return text && JSON.parse(text);
  }

  // order makes an order by the API and returns it.
  order(more = {}) {
    this.made = (this.made ?? 0) + 1;
    return this.call(this.api, "/v1/orders", { order_no: `b-${process.pid}-${this.made}`, amount: 8800, currency: "CNY", subject: "龙井茶 <b>tea</b> & cup", ...more });
  }

  // taken lists what the channel's own books say was charged for an order.
  async taken(orderNo) {
    const order = await this.call(this.api, "/v1/orders/" + orderNo);
    const numbers = new Set(order.payments.map((p) => p.channel_number));
    const books = await this.call(this.sim, "/_sim/books");
    return books.charges.filter((c) => numbers.has(c.number) && ["paid", "refunded", "partially_refunded"].includes(c.status));
  }

  pass(seconds) { return this.call(this.sim, "/_sim/clock", { advance_s: seconds }); }
}

// watch runs in every page, before its own scripts.
function watch({ mayFail }) {
  document.addEventListener("securitypolicyviolation", (e) => window.tellTest(`policy: ${e.violatedDirective} ${e.blockedURI}`));
  if (mayFail) return;
  const look = () => {
    const words = document.body?.innerText ?? "";
    const word = /fail|失败/i.exec(words)?.[0];
    if (word) window.tellTest(`says ${word}: ${words.replace(/\s+/g, " ")}`);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
}

// phase waits until a checkout shows a phase.
export async function phase(page, name) {
  try {
    await page.locator(`${hook("phase")}[data-phase="${name}"]`).waitFor({ state: "attached" });
  } catch {
    const words = await page.locator("#panel").innerText().catch(String);
    throw new Error(`the page is not ${name}, it says: ${words.replace(/\s+/g, " ")}`);
  }
}

export const choose = (page, label) => page.locator(hook("choice-" + label)).check();

export async function payBy(page, label) {
  await choose(page, label);
  await page.locator(hook("pay")).click();
}
