// Follows what goes on by itself: asks for the page anew when something of the kinds in data-kinds changes, and shows
// the part #followed of it. The rest stays: somebody may be writing in it. Where changes are not heard of, it asks as
// long as that part is marked with data-follow.
import { live, seldom } from "./live.js";
import { ask, fragment } from "./ui.js";

/** How long to wait before asking again: longer each time that nothing has changed, and longest after an answer that
 * did not come. A page that nobody sees does not ask. */
const pause = 1000;
const longPause = 10_000;

/** How long to wait between two answers where all changes are heard of. */
const livePause = 2000;

let wait = pause;
let heard = false;
let shown = "";

const part = () => /** @type {HTMLElement | null} */ (document.querySelector("#followed"));

async function again() {
  const followed = part();
  if (!followed || document.hidden) return;
  try {
    const answer = await (await ask(location.href)).text();
    wait = answer === shown ? Math.min(wait * 1.5, longPause) : pause;
    if (answer !== shown) show(followed, answer);
    shown = answer;
  } catch {
    wait = longPause;
  }
}

async function poll() {
  const followed = part();
  if (!followed?.hasAttribute("data-follow") && !followed?.dataset.kinds) return;
  if (document.hidden) {
    document.addEventListener("visibilitychange", poll, { once: true });
    return;
  }
  if (!heard && followed.hasAttribute("data-follow")) await again();
  setTimeout(poll, wait);
}

/** Shows the part as it is now. Who stands on a link of it stays there, and what was unfolded stays so.
 * @param {Element} before @param {string} page */
function show(before, page) {
  const now = fragment(page).querySelector("#followed");
  if (!now) return;
  const active = document.activeElement;
  const link = active && before.contains(active) ? active.getAttribute("href") : null;
  const unfolded = new Set([...before.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  for (const details of now.querySelectorAll("details")) {
    if (unfolded.has(details.querySelector("summary")?.textContent ?? "")) details.open = true;
  }
  before.replaceWith(now);
  if (link !== null) /** @type {HTMLElement | null} */ (now.querySelector(`a[href="${CSS.escape(link)}"]`))?.focus();
}

const soon = seldom(again, livePause);
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
