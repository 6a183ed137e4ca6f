// Follows an operation while it works.
import { ask, fragment } from "../ui/ui.js";

/** How long to wait before asking again. */
const pause = 1000;

const working = ["selecting", "running"];

async function follow() {
  const shown = document.querySelector(".operation");
  if (!(shown instanceof HTMLElement) || !working.includes(shown.dataset.phase ?? "")) return;
  try {
    const response = await ask(location.href);
    shown.replaceWith(fragment(await response.text()));
  } finally {
    setTimeout(follow, pause);
  }
}

setTimeout(follow, pause);
