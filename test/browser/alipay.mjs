// The hosted checkout with codes and forms, which the payer acts on elsewhere.
import { after, afterEach, before, test } from "node:test";
import assert from "node:assert/strict";
import { Demo, hook, languages, payBy, phase } from "./demo.mjs";

let demo;
before(async () => { demo = await Demo.start(); });
after(() => demo?.stop());
afterEach(() => demo.checkProblems());

const seconds = (text) => {
  const [, minutes, rest] = /^(\d+):(\d\d)$/.exec(text) ?? assert.fail(`no time left: ${text}`);
  return 60 * minutes + Number(rest);
};

for (const { lang, locale } of languages) {
  const checkout = async (order, more) => {
    const page = await (await demo.device({ locale, ...more })).newPage();
    await page.goto(order.checkout_url);
    return page;
  };
  const time = (page, where) => page.locator(`${hook(where)} time`).textContent();

  test(`${lang}: a code is drawn, counts down, is the same everywhere and is paid`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "alipay-qr");
    await page.locator(`${hook("code")} svg path`).first().waitFor();
    const left = seconds(await time(page, "time-left"));
    assert.ok(left > 13 * 60 && left <= 15 * 60, `${left} s`);
    const other = await checkout(order);
    const code = await page.locator(hook("open-code")).getAttribute("href");
    assert.equal(await other.locator(hook("open-code")).getAttribute("href"), code);
    const drawn = await page.locator(`${hook("code")} svg`).innerHTML();
    await page.reload();
    assert.equal(await page.locator(`${hook("code")} svg`).innerHTML(), drawn);
    await page.waitForFunction(([selector, was]) => document.querySelector(selector).textContent !== was,
      [`${hook("time-left")} time`, await time(page, "time-left")]);

    const payer = await (await demo.device({ locale })).newPage();
    await payer.goto(code);
    await payer.locator("button[value=paid]").click();
    await Promise.all([page, other].map((p) => phase(p, "paid")));
    assert.equal((await demo.taken(order.order_no)).length, 1);
    await payer.goto(code); // an old code
    assert.equal(await payer.locator("button[value=paid]").count(), 0);
  });

  test(`${lang}: from an unscanned code to a card: why it waits, until when, and one charge`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "alipay-qr");
    await phase(page, "waiting");
    await page.locator(hook("other-way")).locator("summary").click();
    await payBy(page, "card-pays");
    await page.locator(hook("free-in")).waitFor();
    const left = seconds(await time(page, "free-in"));
    assert.ok(left > 13 * 60 && left < 30 * 60, `${left} s`);
    await page.waitForResponse((r) => r.url().includes("/state"));
    await page.waitForResponse((r) => r.url().includes("/state"));
    assert.equal(await page.locator(hook("free-in")).count(), 1, "the reason is forgotten by the next poll");
    assert.equal(await page.locator(hook("code")).count(), 1, "the code can still be paid and is not shown");

    await demo.pass(left + 1);
    await phase(page, "cancelled");
    assert.equal(await page.locator(hook("free-in")).count(), 0);
    await payBy(page, "card-pays");
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: a scanned code is closed and the card pays at once`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "alipay-qr");
    const payer = await (await demo.device({ locale })).newPage();
    await payer.goto(await page.locator(hook("open-code")).getAttribute("href")); // opening it is the scan
    await payer.locator("button[value=paid]").waitFor();
    await page.locator(hook("other-way")).locator("summary").click();
    await payBy(page, "card-pays");
    await phase(page, "paid");
    await payer.locator("button[value=paid]").click(); // too late
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: a code that was paid elsewhere while a card is chosen`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "alipay-qr");
    await page.locator(hook("other-way")).locator("summary").click();
    const { payments: [{ channel_number: number }] } = await demo.call(demo.api, "/v1/orders/" + order.order_no);
    await demo.call(demo.sim, "/_sim/pay", { channel: "alipay", number });
    await page.locator(hook("pay")).click().catch(() => {}); // the page may know already
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: a form leads to the cashier and back`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "alipay-page");
    await page.locator(hook("continue")).click();
    await page.locator("button[value=paid]").waitFor();
    await page.goto(order.checkout_url);
    await phase(page, "waiting");
    await page.locator(hook("continue")).click();
    await page.locator("button[value=paid]").click();
    await page.waitForURL(/\/checkout\//);
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });
}
