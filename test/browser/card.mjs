// The hosted checkout with a card: clicks, tabs, devices, reloads, the bank's
// page, and orders that cannot be paid.
import { after, afterEach, before, test } from "node:test";
import assert from "node:assert/strict";
import { Demo, hook, languages, payBy, phase } from "./demo.mjs";

let demo;
before(async () => { demo = await Demo.start(); });
after(() => demo?.stop());
afterEach(() => demo.checkProblems());

for (const { lang, locale, confirming } of languages) {
  const device = (more) => demo.device({ locale, ...more });
  const checkout = async (order, more) => {
    const page = await (await device(more)).newPage();
    await page.goto(order.checkout_url);
    return page;
  };

  test(`${lang}: double click, reload, back, second tab and second device are one payment`, async () => {
    const order = await demo.order();
    const first = await checkout(order), other = await checkout(order);
    const tab = await first.context().newPage();
    await tab.goto(order.checkout_url);
    await demo.call(demo.sim, "/_sim/faults", { channel: "stripe", operation: "confirm", fault: "delay", delay_ms: 2500 });
    await first.locator(hook("pay")).dblclick({ noWaitAfter: true });
    await phase(first, "confirming");
    assert.ok((await first.locator(hook("title")).textContent()).includes(confirming));
    assert.equal(await first.locator(`${hook("pay")}:enabled`).count(), 0);
    await Promise.all([tab, other].map((p) => p.locator(hook("pay")).click({ noWaitAfter: true }).catch(() => {}))); // it may have gone already
    await first.reload();
    await first.goto(demo.shop);
    await first.goBack();
    await Promise.all([first, tab, other].map((p) => phase(p, "paid")));
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: a lost answer is confirmed, never called anything else`, async () => {
    const order = await demo.order({ currency: "JPY" });
    const page = await checkout(order);
    await demo.call(demo.sim, "/_sim/faults", { channel: "stripe", operation: "confirm", fault: "lose_response" });
    await page.locator(hook("pay")).click();
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: a click whose connection breaks ends with what is true`, async () => {
    const order = await demo.order();
    const page = await checkout(order, { expected: /net::ERR_/ });
    await page.route("**/pay?*", async (route) => {
      await route.fetch();
      await route.abort("connectionreset");
    });
    await page.locator(hook("pay")).click();
    await phase(page, "paid");
  });

  test(`${lang}: a declined card, then one that pays`, async () => {
    const order = await demo.order({ currency: "EUR" });
    const page = await checkout(order);
    await payBy(page, "card-declined");
    await phase(page, "declined");
    await page.reload();
    await phase(page, "declined");
    await payBy(page, "card-pays");
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: the bank's page, left and come back to`, async () => {
    const order = await demo.order();
    const page = await checkout(order), other = await checkout(order);
    await payBy(page, "card-authentication");
    await phase(page, "waiting");
    await phase(other, "waiting");
    await page.locator(hook("continue")).click();
    await page.locator("button[value=paid]").waitFor();
    await page.goBack();
    await phase(page, "waiting");
    await page.locator(hook("continue")).click();
    await page.locator("button[value=paid]").click();
    await page.waitForURL(/\/checkout\//);
    await phase(page, "paid");
    await phase(other, "paid");
  });

  test(`${lang}: declined at the bank's page, another card pays`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "card-authentication");
    await page.locator(hook("continue")).click();
    await page.locator("summary").click();
    await page.locator("button[value=declined]").click();
    await page.waitForURL(/\/checkout\//);
    await phase(page, "declined");
    await payBy(page, "card-pays");
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: another card while the bank waits closes the first attempt`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await payBy(page, "card-authentication");
    await phase(page, "waiting");
    await page.locator(hook("other-way")).locator("summary").click();
    await payBy(page, "card-pays");
    await phase(page, "paid");
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });

  test(`${lang}: money that comes after all is surplus and is said to be`, async () => {
    const order = await demo.order();
    const page = await checkout(order);
    await page.locator(hook("pay")).click();
    await phase(page, "paid");
    const [charge] = await demo.taken(order.order_no);
    await demo.call(demo.sim, "/_sim/pay", { channel: "stripe", number: charge.number, force: true });
    await assert.doesNotReject(async () => {
      for (const end = Date.now() + 30_000; ;) {
        await page.reload();
        if (await page.locator(hook("surplus")).count()) return;
        if (Date.now() > end) throw new Error("no surplus is shown");
        await page.waitForTimeout(200);
      }
    });
    await phase(page, "paid");
  });

  test(`${lang}: a closed order and a forged address`, async () => {
    const order = await demo.order();
    const page = await checkout(order, { expected: /status of 404/ });
    await phase(page, "ready");
    await demo.call(demo.api, `/v1/orders/${order.order_no}/close`, {});
    await page.locator(hook("pay")).click(); // the page does not know yet
    await phase(page, "closed");
    assert.equal(await page.locator(hook("pay-form")).count(), 0);
    await page.goto(order.checkout_url.slice(0, -2) + "xx");
    await page.locator(hook("message")).waitFor();
  });

  test(`${lang}: without a script`, async () => {
    const order = await demo.order();
    const page = await checkout(order, { javaScriptEnabled: false });
    await page.locator(hook("pay")).click();
    await phase(page, "paid"); // by itself or when the page has renewed itself
    assert.equal((await demo.taken(order.order_no)).length, 1);
  });
}
