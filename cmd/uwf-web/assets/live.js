// Enhances pages that work without it: local times, copy buttons, filters, keys and live updates.
"use strict";
(() => {
  const $$ = (selector, of = document) => [...of.querySelectorAll(selector)];

  // Times are relative to now, in the reader's zone.
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const ago = (at) => {
    const seconds = (at - Date.now()) / 1000;
    const unit = units.find(([, size]) => Math.abs(seconds) >= size);
    return unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : "just now";
  };
  const times = (of) => $$("time[datetime]", of).forEach((t) => {
    const at = new Date(t.dateTime);
    t.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
    t.textContent = "clock" in t.dataset ? at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" }) : ago(at);
  });

  // Commands and ids can be copied.
  const copies = (of) => $$("[data-copy]", of).forEach((code) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${code.textContent.slice(0, 60)}`);
    button.onclick = async (e) => {
      e.preventDefault();
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    code.after(" ", button);
  });

  // Children can be filtered by status.
  const filters = (of) => $$("[data-filter]", of).forEach((line) => {
    const items = $$(":scope > li", line.nextElementSibling);
    const all = [...new Set(items.map((li) => li.dataset.status))];
    if (all.length < 2) return;
    line.replaceChildren(...["all", ...all].map((status) => {
      const mine = items.filter((li) => status === "all" || li.dataset.status === status);
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${mine.length} ${status}`;
      button.setAttribute("aria-pressed", String(status === "all"));
      button.onclick = () => {
        items.forEach((li) => { li.hidden = !mine.includes(li); });
        $$("button", line).forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      };
      return button;
    }));
  });

  // A link to a step opens it.
  const target = () => {
    const step = location.hash && document.getElementById(location.hash.slice(1));
    if (step && step.tagName === "DETAILS") step.open = true;
  };
  window.addEventListener("hashchange", target);
  target();

  // A form is sent once. The button's value is read before it is disabled.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    setTimeout(() => $$("button", e.target).forEach((b) => { b.disabled = true; }));
  });
  window.addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

  const enhance = (of) => { times(of); copies(of); filters(of); };
  const raw = new Map(); // the parts as the server sent them
  const remember = (part) => raw.set(part.id, part.innerHTML);
  $$("[data-part]").forEach(remember);
  enhance(document);
  setInterval(() => { if (!document.hidden) times(document); }, 30000);

  // Keys move between items, open them and answer.
  const items = () => $$("[data-item]").filter((e) => e.offsetParent);
  let chosen = null;
  const choose = (step) => {
    const all = items();
    if (!all.length) return;
    const at = all.findIndex((e) => e.id ? e.id === chosen?.id : e === chosen);
    chosen?.classList.remove("chosen");
    chosen = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    chosen.classList.add("chosen");
    chosen.scrollIntoView({ block: "nearest" });
    ($$("summary, a[href]", chosen)[0] || chosen).focus({ preventScroll: true });
  };
  const answer = () => {
    const form = (chosen?.isConnected && chosen.querySelector("[data-answer]")) || document.querySelector("[data-answer]");
    const first = form && $$("button, summary, textarea, select, input", form).find((e) => e.offsetParent && !e.disabled);
    if (!first) return;
    form.scrollIntoView({ block: "nearest" });
    first.focus();
  };
  const help = () => {
    let dialog = document.querySelector("dialog");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.setAttribute("aria-label", "Keys");
      dialog.innerHTML = "<h2>Keys</h2><p><kbd>j</kbd> <kbd>k</kbd> next, previous</p><p><kbd>Enter</kbd> open</p>" +
        "<p><kbd>a</kbd> answer</p><p><kbd>?</kbd> this list</p><form method=dialog><button>Close</button></form>";
      document.body.append(dialog);
    }
    if (dialog.open) dialog.close(); else dialog.showModal();
  };
  const keys = { j: () => choose(1), k: () => choose(-1), a: answer, "?": help };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, [contenteditable]")) return;
    if (!keys[e.key] || (document.querySelector("dialog[open]") && e.key !== "?")) return;
    e.preventDefault();
    keys[e.key]();
  });

  // The server names the parts that changed; only these are fetched, and only while the page is visible.
  const address = document.body.dataset.live;
  if (!address || !window.EventSource) return;
  const state = document.querySelector(".live");
  const wanted = new Set();
  let busy = false;

  /** Reports whether someone is filling in a form in a part. */
  const touched = (part) => $$("textarea, input:not([type=hidden]), select", part).some((f) => f === document.activeElement
    || (f.type === "checkbox" ? f.checked !== f.defaultChecked
      : f.tagName === "SELECT" ? f.selectedIndex !== Math.max(0, [...f.options].findIndex((o) => o.defaultSelected))
        : f.value !== f.defaultValue));
  const stops = (part) => $$("a[href], button, summary, input, select, textarea, [tabindex]", part);

  const append = (part, fresh) => {
    enhance(fresh);
    part.append(...fresh.childNodes);
    part.dataset.last = fresh.dataset.last;
    raw.delete(part.id);
  };
  const replace = (part, fresh) => {
    const open = new Map($$("details[id]", part).map((d) => [d.id, d.open]));
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const at = focused && focused.closest("[id]");
    const which = focused ? stops(at).indexOf(focused) : -1;
    remember(fresh);
    $$("details[id]", fresh).filter((d) => open.has(d.id)).forEach((d) => { d.open = open.get(d.id); });
    enhance(fresh);
    part.replaceWith(fresh);
    const back = at && document.getElementById(at.id);
    if (back) (stops(back)[which] || back).focus({ preventScroll: true });
  };
  const show = (now) => $$("[data-part]", now).forEach((got) => {
    const part = document.getElementById(got.id);
    if (!part) return;
    if (got.dataset.title) {
      document.title = got.dataset.title;
      document.querySelector(".count").textContent = /^\((\d+)\)/.exec(document.title)?.[1] || "";
    }
    const fresh = document.adoptNode(got);
    if ("append" in fresh.dataset) append(part, fresh);
    else if (fresh.innerHTML !== raw.get(part.id) && !touched(part)) replace(part, fresh);
  });
  const load = async () => {
    if (busy || !wanted.size) return;
    busy = true;
    const url = new URL(location.href);
    url.hash = "";
    const parts = [...wanted];
    wanted.clear();
    if (!parts.includes("*")) url.searchParams.set("part", parts.join(","));
    const last = document.querySelector("#part-steps[data-last]");
    if (last && parts.includes("steps")) url.searchParams.set("after", last.dataset.last);
    try {
      const answer = await fetch(url, { credentials: "same-origin" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the state says that the server has ended */ }
    busy = false;
    load();
  };

  let events = null;
  const listen = () => {
    if (document.hidden) { events?.close(); events = null; return; }
    if (events) return;
    events = new EventSource(address);
    let first = true;
    events.onopen = () => {
      state.textContent = "live";
      state.classList.remove("off");
      if (!first) { wanted.add("*"); load(); }
      first = false;
    };
    events.onerror = () => { state.textContent = "not live"; state.classList.add("off"); };
    events.onmessage = (e) => {
      if (e.data === "begin") return;
      let parts = ["*"];
      try { parts = JSON.parse(e.data).parts || parts; } catch { /* "changed" */ }
      parts.forEach((p) => wanted.add(p));
      load();
    };
  };
  document.addEventListener("visibilitychange", listen);
  listen();
})();
