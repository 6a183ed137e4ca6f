// Keeps the part #followed of the page up to date: loads the page again when an object of the kinds in data-kinds
// changes, and replaces that part. The rest stays, because the person may be writing in it. Without a stream of changes it
// polls as long as that part is marked with data-follow.
import { answered, live, throttled } from "./live.js";
import { ask, fragment, say, scarceFor } from "./ui.js";

/** How long to wait between two requests: longer each time that nothing has changed, and longest after a request without
 * an answer. A hidden page sends none. */
const pause = 1000;
const longPause = 10_000;

/** How long to wait between two requests if they are not scarce: at least livePause, and liveShare times as long as the
 * last one took, up to slowPause. */
const livePause = 2000;
const liveShare = 10;
const slowPause = 30_000;

let wait = pause;
let connected = false;
/** Whether the last request got no answer, or was not sent because the page was hidden. */
let missed = false;
/** When the poll may send the next request after one without an answer. */
let due = 0;
/** How long the last request took, answered or not, in milliseconds. */
let took = 0;
let shown = "";

/** How long to wait after the last request, in milliseconds. */
const rest = () => Math.max(livePause, Math.min(liveShare * took, slowPause), scarceFor());

const part = () => /** @type {HTMLElement | null} */ (document.querySelector("#followed"));

async function again() {
  const followed = part();
  missed = document.hidden;
  if (!followed || missed) return;
  const began = performance.now();
  try {
    const answer = await (await ask(location.href)).text();
    wait = answer === shown ? Math.min(wait * 1.5, longPause) : pause;
    if (answer !== shown) show(followed, answer);
    shown = answer;
    answered();
  } catch (error) {
    missed = true;
    wait = longPause;
    answered(error);
  } finally {
    took = performance.now() - began;
    if (missed) due = performance.now() + Math.max(wait, rest());
  }
}

async function poll() {
  const followed = part();
  if (!followed?.hasAttribute("data-follow") && !followed?.dataset.kinds) return;
  if (document.hidden) {
    const back = () => {
      due = 0;
      setTimeout(poll, scarceFor());
    };
    document.addEventListener("visibilitychange", back, { once: true });
    return;
  }
  if (missed ? performance.now() >= due : !connected && followed.hasAttribute("data-follow")) await again();
  setTimeout(poll, Math.max(missed ? due - performance.now() : wait, scarceFor()));
}

/** Elements that a person may have focused, unfolded or scrolled. */
const withState = "a, button, summary, [tabindex], .scrolls";

/** These elements by a name that identifies them in both versions of the part. Equal names are numbered.
 * @param {Element} part */
function byName(part) {
  /** @type {Map<string, HTMLElement>} */
  const all = new Map();
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (part.querySelectorAll(withState))) {
    const what = element.getAttribute("href") ?? element.ariaLabel ?? (element.matches("button, summary") && element.textContent);
    const name = [element.closest("[aria-labelledby]")?.getAttribute("aria-labelledby"), element.tagName, what].join();
    let number = 0;
    while (all.has(name + number)) number++;
    all.set(name + number, element);
  }
  return all;
}

/** The status that the page shows in its header; "" for a list.
 * @param {Element} part */
const statusOf = (part) => part.querySelector("header .badge")?.textContent ?? "";

/** Replaces the part by its new version, and restores what the person had focused, unfolded or scrolled.
 * @param {Element} before @param {string} page */
function show(before, page) {
  const now = fragment(page).querySelector("#followed");
  if (!now) return;
  const fresh = byName(now);
  const kept = [...byName(before)].flatMap(([name, element]) => {
    const after = fresh.get(name);
    return after ? [{ element, after, focused: element === document.activeElement, left: element.scrollLeft, top: element.scrollTop }] : [];
  });
  const inside = before.contains(document.activeElement);
  const stood = statusOf(before);
  before.replaceWith(now);
  if (statusOf(now) !== stood) say(statusOf(now));
  for (const { element, after, focused, left, top } of kept) {
    after.hidden = element.hidden;
    if (element.parentElement instanceof HTMLDetailsElement) after.parentElement?.toggleAttribute("open", element.parentElement.open);
    after.scrollTo(left, top);
    if (focused) after.focus({ preventScroll: true });
  }
  // The focused element may not exist any more.
  if (inside && !now.contains(document.activeElement)) document.querySelector("main")?.focus({ preventScroll: true });
}

const soon = throttled(again, rest);
const kinds = part()?.dataset.kinds?.split(",");
if (kinds) {
  live(kinds, {
    change: ({ id }) => {
      const only = part()?.dataset.id;
      if (!only || only === id) soon();
    },
    again: soon,
    connected: (is) => {
      connected = is;
    },
  });
}
setTimeout(poll, wait);
