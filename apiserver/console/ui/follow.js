// Follows what goes on by itself: asks for the page anew when something of the kinds in data-kinds changes, and shows
// the part #followed of it. The rest stays: somebody may be writing in it. Where changes are not heard of, it asks as
// long as that part is marked with data-follow.
import { answered, live, seldom } from "./live.js";
import { ask, fragment, say } from "./ui.js";

/** How long to wait before asking again: longer each time that nothing has changed, and longest after an answer that
 * did not come. A page that nobody sees does not ask. */
const pause = 1000;
const longPause = 10_000;

/** How long to wait between two answers where all changes are heard of. */
const livePause = 2000;

let wait = pause;
let heard = false;
/** Whether an answer did not come, or was not asked for because nobody saw the page. */
let missed = false;
let shown = "";

const part = () => /** @type {HTMLElement | null} */ (document.querySelector("#followed"));

async function again() {
  const followed = part();
  missed = document.hidden;
  if (!followed || missed) return;
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
  }
}

async function poll() {
  const followed = part();
  if (!followed?.hasAttribute("data-follow") && !followed?.dataset.kinds) return;
  if (document.hidden) {
    document.addEventListener("visibilitychange", poll, { once: true });
    return;
  }
  if (missed || (!heard && followed.hasAttribute("data-follow"))) await again();
  setTimeout(poll, wait);
}

/** What a person leaves in a state: focused, unfolded or scrolled. */
const withState = "a, button, summary, [tabindex], .scrolls";

/** The elements with such a state, by what they are and where. Those that are alike are numbered.
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

/** How what the page is about stands, in a word; none for a list.
 * @param {Element} part */
const standing = (part) => part.querySelector("header .badge")?.textContent ?? "";

/** Shows the part as it is now, in the state in which it was left.
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
  const stood = standing(before);
  before.replaceWith(now);
  if (standing(now) !== stood) say(standing(now));
  for (const { element, after, focused, left, top } of kept) {
    after.hidden = element.hidden;
    if (element.parentElement instanceof HTMLDetailsElement) after.parentElement?.toggleAttribute("open", element.parentElement.open);
    after.scrollTo(left, top);
    if (focused) after.focus({ preventScroll: true });
  }
  // What had the focus may be gone.
  if (inside && !now.contains(document.activeElement)) document.querySelector("main")?.focus({ preventScroll: true });
}

const soon = seldom(again, () => livePause);
const kinds = part()?.dataset.kinds?.split(",");
if (kinds) {
  live(kinds, {
    change: ({ id }) => {
      const only = part()?.dataset.id;
      if (!only || only === id) soon();
    },
    again: soon,
    connected: (is) => {
      heard = is;
    },
  });
}
setTimeout(poll, wait);
