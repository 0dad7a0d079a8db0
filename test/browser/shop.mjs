// The demo shop: an order, every way to pay it, and the accidents.
import { after, afterEach, before, test } from "node:test";
import assert from "node:assert/strict";
import { Demo, hook, languages } from "./demo.mjs";

let demo;
before(async () => { demo = await Demo.start(); });
after(() => demo?.stop());
afterEach(() => demo.checkProblems());

// A service that is killed answers nothing for a moment; the pages ask again.
const whileKilled = /^Failed to load resource: (net::ERR_|the server responded with a status of 5)/;

async function makeOrder(page, { currency = "USD", amount = "19.99" } = {}) {
  await page.goto(demo.shop);
  await page.locator(hook("currency")).selectOption(currency);
  await page.locator(hook("amount")).fill(amount);
  await page.locator(hook("make-order")).click();
  await page.locator(hook("verdict")).waitFor();
  return page.locator(hook("order-no")).textContent();
}

const verdict = (page, name) => page.locator(`${hook("verdict")}[data-verdict="${name}"]`).waitFor();
const paid = (page) => page.locator(`${hook("order-status")}[data-status="PAID"]`).waitFor();

async function onePaid(page, orderNo) {
  await paid(page);
  await verdict(page, "verdict-one");
  assert.equal(await page.locator(hook("charges")).textContent(), "1");
  assert.equal((await demo.taken(orderNo)).length, 1);
}

for (const { lang, locale } of languages) {
  const open = async (more) => (await demo.device({ locale, ...more })).newPage();

  test(`${lang}: ten clicks with ten keys are one charge`, async () => {
    const page = await open();
    const no = await makeOrder(page);
    await page.locator(hook("pay-ten")).click();
    await onePaid(page, no);
    assert.equal(await page.locator(hook("attempts")).textContent(), "1");
  });

  test(`${lang}: a lost answer ends paid, with one charge`, async () => {
    const page = await open();
    const no = await makeOrder(page);
    await page.locator(hook("lose-answer")).click();
    await page.locator(hook("notice")).waitFor();
    await page.locator(hook("pay")).click();
    await onePaid(page, no);
  });

  test(`${lang}: a killed service comes back and finishes the payment`, async () => {
    const page = await open({ expected: whileKilled });
    const no = await makeOrder(page);
    const first = await page.locator(hook("process")).textContent();
    await page.locator(hook("slow-channel")).click();
    await page.locator(hook("notice")).waitFor();
    await page.locator(hook("pay")).click({ noWaitAfter: true });
    await page.locator(hook("attempt")).waitFor();
    await page.locator(hook("kill")).click();
    await onePaid(page, no);
    assert.notEqual(await page.locator(hook("process")).textContent(), first);
    assert.ok((await page.locator(hook("process")).getAttribute("class"))?.includes("changed"));
  });

  test(`${lang}: a declined card, then one that pays`, async () => {
    const page = await open({ mayFail: true }); // the decline of an attempt may be named
    const no = await makeOrder(page);
    await page.locator(hook("choice")).selectOption({ index: 1 });
    await page.locator(hook("pay")).click();
    await page.locator(`${hook("attempt")}[data-status="FAILED"]`).waitFor();
    await page.locator(hook("choice")).selectOption({ index: 0 });
    await page.locator(hook("pay")).click();
    await onePaid(page, no);
    assert.equal(await page.locator(hook("attempts")).textContent(), "2");
  });

  test(`${lang}: a code whose answer was lost once is shown and paid`, async () => {
    const page = await open();
    const no = await makeOrder(page, { currency: "CNY", amount: "88" });
    await page.locator(hook("choice")).selectOption("alipay.qr.");
    await page.locator(hook("slow-channel")).click();
    await page.locator(hook("pay")).click();
    await page.locator(hook("code")).waitFor();
    await verdict(page, "verdict-payer");
    const opened = page.context().waitForEvent("page");
    await page.locator(hook("open-code")).click();
    await (await opened).locator("button[value=paid]").click();
    await onePaid(page, no);
  });

  test(`${lang}: what is no order is refused in words`, async () => {
    const page = await open({ expected: /status of 400/ });
    await page.goto(demo.shop);
    await page.locator(hook("amount")).fill("1.999");
    await page.locator(hook("make-order")).click();
    await page.locator(hook("notice")).waitFor();
    await page.locator(hook("language")).click();
    await page.locator(hook("order-form")).waitFor();
  });
}
