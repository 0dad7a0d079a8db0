// Keeps a checkout page current. The server alone knows the state; this script
// asks for it, shows what it is given, and never decides that a payment failed.
"use strict";
(() => {
  const panel = document.getElementById("panel");
  const shortest = 1000, longest = 15000, idle = 5000;
  let timer = 0, pause = shortest, shown = panel.innerHTML;
  let final = panel.dataset.final === "true", quick = panel.dataset.quick === "true";
  let paying = false;
  // What is shown while the phase lasts: {text, phase}.
  let notice = panel.dataset.notice ? { text: panel.dataset.notice, phase: panel.querySelector("[data-phase]").dataset.phase } : null;
  let ahead = Number(panel.dataset.now) - Date.now(); // the service's clock against ours

  function schedule(ms) {
    clearTimeout(timer);
    if (!final && !paying) timer = setTimeout(poll, ms);
  }

  function next() {
    const wait = quick ? pause : Math.max(pause, idle);
    pause = Math.min(pause * 1.5, longest);
    schedule(wait);
  }

  // count writes what is left until the moments that the server has named, by the
  // server's clock. At their end the server is asked what is true now.
  function count() {
    let over = false;
    for (const time of panel.querySelectorAll("[data-until]")) {
      const left = Math.ceil((Number(time.dataset.until) - Date.now() - ahead) / 1000);
      const text = Math.floor(Math.max(left, 0) / 60) + ":" + String(Math.max(left, 0) % 60).padStart(2, "0");
      over ||= left <= 0 && time.textContent !== text;
      if (time.textContent !== text) time.textContent = text;
    }
    if (over) {
      pause = shortest;
      schedule(pause);
    }
  }

  function show(state) {
    ahead = state.now - Date.now();
    if (state.whole && panel.dataset.whole !== "true") {
      final = true; // this page ends here
      location.reload();
      return;
    }
    notice = state.notice ? { text: state.notice, phase: state.phase } : null;
    if (state.html !== shown) {
      const open = panel.querySelector("details")?.open;
      const chosen = panel.querySelector("input[name=choice]:checked")?.value;
      panel.innerHTML = shown = state.html;
      for (const input of panel.querySelectorAll("input[name=choice]")) {
        if (input.value === chosen) input.checked = true;
      }
      const details = panel.querySelector("details");
      if (open && details) details.open = true;
      pause = shortest;
      count();
    }
    final = state.final;
    quick = state.quick;
  }

  async function ask(url, init) {
    const answer = await fetch(url, { ...init, headers: { Accept: "application/json" }, cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    return answer.json();
  }

  async function poll() {
    try {
      const kept = notice ? "&notice=" + notice.text + "&phase=" + notice.phase : "";
      show(await ask(panel.dataset.state + kept));
    } catch {
      // The service may be starting again. What is shown stays true: the outcome
      // is not known, and asking goes on.
    }
    next();
  }

  // confirming tells the payer at once that the click has arrived.
  function confirming(form) {
    for (const element of form.elements) element.disabled = true;
    const phase = panel.querySelector("[data-phase]");
    phase.className = "phase confirming";
    phase.dataset.phase = "confirming";
    phase.querySelector("h2").textContent = panel.dataset.confirming;
    phase.querySelector("p")?.remove();
    panel.querySelector("[data-test=notice]")?.remove();
    shown = ""; // whatever comes next is drawn
  }

  function lost(form) {
    const note = document.createElement("p");
    note.className = "notice";
    note.dataset.test = "notice";
    note.textContent = panel.dataset.lost;
    form.replaceWith(note);
  }

  panel.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.id !== "pay") return;
    event.preventDefault();
    if (paying) return;
    const body = new URLSearchParams(new FormData(form));
    paying = true;
    clearTimeout(timer);
    confirming(form);
    try {
      show(await ask(form.action, { method: "POST", body }));
    } catch {
      lost(form);
      quick = true;
    }
    paying = false;
    pause = shortest;
    next();
  });

  // Coming back to the page, by the back button or from another tab, looks at
  // once.
  function look() {
    if (document.visibilityState !== "visible") return;
    pause = shortest;
    schedule(0);
  }
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pageshow", (event) => { if (event.persisted) look(); });
  window.addEventListener("online", look);
  setInterval(count, 1000);
  count();
  next();
})();
