// Follows what goes on by itself: asks for the page anew as long as a part of it is marked with data-follow.
import { ask, fragment } from "./ui.js";

/** How long to wait before asking again, and after an answer that did not come. */
const pause = 1000;
const longPause = 10_000;

const main = /** @type {HTMLElement} */ (document.querySelector("main"));
let shown = "";

async function follow() {
  if (!main.querySelector("[data-follow]")) return;
  let next = pause;
  try {
    const answer = await (await ask(location.href)).text();
    if (answer !== shown) show(answer);
    shown = answer;
  } catch {
    next = longPause;
  }
  setTimeout(follow, next);
}

/** Shows the page as it is now. Who stands on a link stays there.
 * @param {string} html */
function show(html) {
  const active = document.activeElement;
  const link = active && main.contains(active) ? active.getAttribute("href") : null;
  main.replaceChildren(fragment(html));
  if (link !== null) /** @type {HTMLElement | null} */ (main.querySelector(`a[href="${CSS.escape(link)}"]`))?.focus();
}

setTimeout(follow, pause);
