// Keeps the story of a demo order current, also while its service is being
// killed and started again.
"use strict";
(() => {
  const panel = document.getElementById("panel");
  if (!panel) return;
  const note = document.getElementById("note");
  const beat = 700;
  const process = () => document.getElementById("process");
  const first = process()?.textContent; // the service that made this page
  let shown = panel.innerHTML, gone = false;

  function tell(text) {
    note.hidden = text === "";
    note.textContent = text;
  }

  function ready() {
    const ten = document.getElementById("ten");
    if (ten) ten.hidden = false; // it needs this script
  }

  function show(html) {
    if (html === shown) return;
    const chosen = panel.querySelector("select[name=choice]")?.value;
    panel.innerHTML = shown = html;
    const select = panel.querySelector("select[name=choice]");
    if (select && chosen) select.value = chosen;
    if (process()?.textContent !== first) process()?.classList.add("changed");
    ready();
  }

  async function poll() {
    try {
      const answer = await fetch(panel.dataset.state, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      show((await answer.json()).html);
      if (gone) tell("");
      gone = false;
    } catch {
      gone = true;
      tell(panel.dataset.gone);
    }
    setTimeout(poll, beat);
  }

  async function post(url, body) {
    try {
      const answer = await fetch(url, { method: "POST", body, headers: { Accept: "application/json" } });
      if (answer.ok) tell((await answer.json()).text);
    } catch {
      // A killed service sends no answer; the poll finds out what became of it.
    }
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!("quiet" in form.dataset)) return;
    event.preventDefault();
    const button = event.submitter;
    const body = new URLSearchParams(new FormData(form));
    const chosen = panel.querySelector("select[name=choice]")?.value;
    if (chosen && !body.has("choice")) body.set("choice", chosen); // what is broken is the channel that is chosen
    if (button) button.disabled = true;
    await post(form.action, body);
    if (button) button.disabled = false;
  });

  // Ten clicks with ten keys: what a shop does that takes no care at all.
  document.addEventListener("click", async (event) => {
    if (event.target.id !== "ten") return;
    const form = event.target.form;
    const body = new URLSearchParams(new FormData(form));
    body.set("fresh", "1");
    event.target.disabled = true;
    await Promise.all(Array.from({ length: 10 }, () => post(form.action, new URLSearchParams(body))));
  });

  ready();
  setTimeout(poll, beat);
})();
