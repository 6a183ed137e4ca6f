// Follows what goes on by itself: asks for the page anew as long as the part of it that changes, #followed, is marked with
// data-follow. The rest stays: somebody may be writing in it.
import { ask, fragment } from "./ui.js";

/** How long to wait before asking again: longer each time that nothing has changed, and longest after an answer that did
 * not come. A page that nobody sees does not ask. */
const pause = 1000;
const longPause = 10_000;

let wait = pause;

let shown = "";

async function follow() {
  const followed = document.querySelector("#followed[data-follow]");
  if (!followed) return;
  if (document.hidden) {
    document.addEventListener("visibilitychange", follow, { once: true });
    return;
  }
  try {
    const answer = await (await ask(location.href)).text();
    wait = answer === shown ? Math.min(wait * 1.5, longPause) : pause;
    if (answer !== shown) show(followed, answer);
    shown = answer;
  } catch {
    wait = longPause;
  }
  setTimeout(follow, wait);
}

/** Shows the part as it is now. Who stands on a link of it stays there.
 * @param {Element} before @param {string} page */
function show(before, page) {
  const now = fragment(page).querySelector("#followed");
  if (!now) return;
  const active = document.activeElement;
  const link = active && before.contains(active) ? active.getAttribute("href") : null;
  before.replaceWith(now);
  if (link !== null) /** @type {HTMLElement | null} */ (now.querySelector(`a[href="${CSS.escape(link)}"]`))?.focus();
}

setTimeout(follow, wait);
