// What the pages do beyond links and forms: parts that change are fetched again, and the calculator has sliders.
"use strict";
(() => {
  const EVERY = 2000, SLOWEST = 15000;
  const status = document.getElementById("live-status");

  function say(text) {
    if (status && status.textContent !== text) status.textContent = text;
  }

  function put(part, text) {
    // The server escapes whatever it writes, and the policy of the page runs no script that is written into it.
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const open = new Set(Array.from(part.querySelectorAll("details"), (each, place) => (each.open ? place : -1)));
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const again = focused && (focused.id ? `#${CSS.escape(focused.id)}`
      : focused.getAttribute("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : null);
    part.replaceChildren(...fresh.body.childNodes);
    part.querySelectorAll("details").forEach((each, place) => { each.open = open.has(place); });
    if (again) part.querySelector(again)?.focus({ preventScroll: true });
  }

  function follow(part) {
    let wait = EVERY;
    async function look() {
      if (!document.hidden) {
        const known = part.querySelector("[data-stamp]")?.dataset.stamp ?? "";
        try {
          const answer = await fetch(`${part.dataset.live}&stamp=${known}`, { headers: { accept: "text/html" } });
          if (answer.status === 200) {
            put(part, await answer.text());
            say(part.querySelector("[data-said]")?.dataset.said ?? "");
          } else if (answer.status !== 204) {
            say(answer.status === 401 ? "Log in again to go on." : "This page is not up to date: load it again.");
          }
          wait = answer.ok ? EVERY : Math.min(2 * wait, SLOWEST);
        } catch {
          say("The dashboard does not answer. This page is as it was when it last did.");
          wait = Math.min(2 * wait, SLOWEST);
        }
      }
      setTimeout(look, wait);
    }
    setTimeout(look, EVERY);
  }

  document.querySelectorAll("[data-live]").forEach(follow);

  const form = document.getElementById("calculator");
  if (form) calculator(form);

  function calculator(form) {
    const NOTCHES = 1000;
    let pending = null, timer = 0, later = 0;

    function slider(field) {
      const input = field.querySelector("input"), range = document.createElement("input");
      const low = Math.log(Number(input.min)), high = Math.log(Number(input.max));
      range.type = "range";
      range.min = 0;
      range.max = NOTCHES;
      range.setAttribute("aria-label", `${field.querySelector("label").textContent}, slider`);
      function follow() {
        const value = Number(input.value);
        if (value > 0) range.value = Math.round(NOTCHES * (Math.log(value) - low) / (high - low));
        range.setAttribute("aria-valuetext", input.value);
      }
      range.addEventListener("input", () => {
        const value = Math.exp(low + (high - low) * range.value / NOTCHES);
        input.value = input.step === "1" ? String(Math.round(Number(value.toPrecision(3)))) : String(Number(value.toPrecision(3)));
        range.setAttribute("aria-valuetext", input.value);
        ask();
      });
      input.addEventListener("input", () => { follow(); ask(); });
      follow();
      input.after(range);
    }

    function query() {
      return new URLSearchParams(new FormData(form)).toString();
    }

    function shown() {
      const given = form.elements.given.value;
      form.querySelector("[data-field=noise]").hidden = given !== "noise";
      form.querySelector("[data-field=epsilon]").hidden = given !== "epsilon";
    }

    async function fetched(address, part, signal) {
      part.classList.add("busy");
      try {
        const answer = await fetch(address, { signal, headers: { accept: "text/html" } });
        if (answer.ok) put(part, await answer.text());
        else say("The calculator is busy: move a slider again in a few seconds.");
      } catch (error) {
        if (error.name !== "AbortError") say("The dashboard does not answer.");
      } finally {
        if (!signal.aborted) part.classList.remove("busy");
      }
    }

    function ask() {
      clearTimeout(timer);
      clearTimeout(later);
      pending?.abort();
      pending = new AbortController();
      const signal = pending.signal, asked = query();
      shown();
      timer = setTimeout(async () => {
        history.replaceState(null, "", `${form.getAttribute("action")}?${asked}`);
        await fetched(`${form.dataset.answer}?${asked}`, document.getElementById("answer"), signal);
        later = setTimeout(() => fetched(`${form.dataset.curves}?${asked}`, document.getElementById("curves"), signal), 200);
      }, 80);
    }

    form.querySelectorAll("[data-field]").forEach(slider);
    form.querySelectorAll("[name=given]").forEach((each) => each.addEventListener("change", ask));
    form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
    shown();
  }
})();
