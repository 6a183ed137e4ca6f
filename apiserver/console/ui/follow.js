// Follows what goes on by itself: asks for the page anew as long as the part of it that changes, #followed, is marked with
// data-follow. The rest stays: somebody may be writing in it.
import { ask, fragment } from "./ui.js";

/** How long to wait before asking again, and after an answer that did not come. */
const pause = 1000;
const longPause = 10_000;

let shown = "";

async function follow() {
  const followed = document.querySelector("#followed[data-follow]");
  if (!followed) return;
  let next = pause;
  try {
    const answer = await (await ask(location.href)).text();
    if (answer !== shown) show(followed, answer);
    shown = answer;
  } catch {
    next = longPause;
  }
  setTimeout(follow, next);
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

setTimeout(follow, pause);
