// Keeps a page as it is now: when the server says that something has changed, the page is
// fetched again, and the parts that differ are replaced. Without it, the page is what it
// was when it was loaded.
"use strict";
(() => {
  const address = document.body.dataset.live;
  if (!address || !window.EventSource) return;
  const state = document.querySelector(".live");
  let busy = false;
  let again = false;

  /** @param {Element} part whether somebody has begun to fill in a form in it */
  const touched = (part) => [...part.querySelectorAll("textarea, input:not([type=hidden]), select")].some(
    (f) => f === document.activeElement || (f.type === "checkbox" ? f.checked !== f.defaultChecked
      : f.tagName === "SELECT" ? f.selectedIndex !== Math.max(0, [...f.options].findIndex((o) => o.defaultSelected))
        : f.value !== f.defaultValue));

  /** @param {Element} part where the keyboard stops in it */
  const stops = (part) => [...part.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex]")];

  /** @param {Document} now */
  const show = (now) => {
    for (const part of document.querySelectorAll("[data-part]")) {
      const fresh = now.getElementById(part.id);
      if (!fresh || fresh.innerHTML === part.dataset.was || touched(part)) continue;
      const was = fresh.innerHTML;
      const open = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
      const focused = part.contains(document.activeElement) ? document.activeElement : null;
      const at = focused && focused.closest("[id]");
      const which = focused ? stops(at).indexOf(focused) : -1;
      for (const d of fresh.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
      fresh.dataset.was = was;
      part.replaceWith(document.adoptNode(fresh));
      const back = at && document.getElementById(at.id);
      if (back) (stops(back)[which] || back).focus({ preventScroll: true });
    }
    document.title = now.title;
  };

  const load = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server has ended; the state says so */ }
    busy = false;
    if (again) { again = false; load(); }
  };

  for (const part of document.querySelectorAll("[data-part]")) part.dataset.was = part.innerHTML;
  const events = new EventSource(address);
  let first = true;
  events.onopen = () => { state.textContent = "live"; if (!first) load(); first = false; };
  events.onerror = () => { state.textContent = "not live"; };
  events.onmessage = (e) => { if (e.data === "changed") load(); };
})();
