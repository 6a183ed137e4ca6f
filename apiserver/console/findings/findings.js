// The list of findings: filters and search without reloading the page, and the finding beside the list.
import { submitted, typedIn } from "../ui/forms.js";
import { ask, find, fragment, report, say } from "../ui/ui.js";
import { basisOf, decide } from "./decisions.js";
import "./keys.js";
import { beginListing, beginRows } from "./live.js";
import { more, watchEnd } from "./more.js";
import { follow, open, openAgain, panel, makeShownCurrent } from "./panel.js";
import { results, makeCurrent } from "./rows.js";
import { keepSelection } from "./selection.js";

document.body.classList.add("scripted");

// --- Filters, order and search -------------------------------------------------------------------------------------

/** @type {AbortController | undefined} */
let asking;

/** The address of the list that is shown. */
let shown = location.pathname + location.search;

/** Shows the results of another address.
 * @param {string} url @param {"push" | "replace" | "none"} record How it enters the browser's history. */
async function go(url, record) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const forgetKnown = beginListing();
  const markChangedSince = beginRows();
  try {
    const text = await (await ask(url, { signal })).text();
    const address = new URL(url, location.href);
    address.hash = location.hash; // the finding beside the list stays
    history.scrollRestoration = "auto"; // this entry may still have the panel's setting
    if (record === "push") history.pushState(null, "", address);
    if (record === "replace") history.replaceState(null, "", address);
    shown = location.pathname + location.search;
    keepPlace(() => keepSelection(() => results.replaceChildren(fragment(text))));
    makeShownCurrent();
    forgetKnown();
    say(results.querySelector(".total")?.textContent ?? "");
    watchEnd();
    // The person has requested the form to decide about all matches: move there.
    if (new URL(url, location.href).searchParams.has("all")) find('.selection.used [name="reason"]', HTMLSelectElement)?.focus();
  } catch (error) {
    report(error);
    // After Back or Forward the address is no longer that of the list that is shown.
    if (!signal.aborted && navigator.onLine && location.pathname + location.search !== shown) location.reload();
  } finally {
    markChangedSince();
  }
}

/** Changes the results and keeps the reader's place: in the search, on a link, or near it.
 * @param {() => void} change */
function keepPlace(change) {
  const active = document.activeElement;
  const inside = active instanceof HTMLElement && results.contains(active) ? active : null;
  const typed = inside instanceof HTMLInputElement && inside.name === "text" ? inside : null;
  const words = inside?.textContent;
  const unfolded = results.querySelector(".facets[open]") !== null;
  change();
  results.querySelector(".facets")?.toggleAttribute("open", unfolded);
  const input = find("#text", HTMLInputElement);
  if (typed && input) {
    input.value = typed.value;
    input.focus();
    input.setSelectionRange(typed.selectionStart, typed.selectionEnd);
  } else if (inside) {
    const link = [...results.querySelectorAll("a")].find((a) => a.textContent === words);
    link?.focus();
    if (results.contains(document.activeElement)) return;
    // The link is in a menu that is closed now, or gone. In the search, keys would be typed.
    const near = link?.closest("details")?.querySelector("summary") ?? results.querySelector(".tools summary");
    /** @type {HTMLElement | null} */ (near)?.focus({ preventScroll: true });
  }
}

window.addEventListener("popstate", () => {
  if (location.pathname + location.search !== shown) go(location.href, "none");
  follow();
});

results.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.closest("[data-all]")) {
    find('input[name="all"]:not(:checked)', HTMLInputElement)?.click();
    find('.selection [name="reason"]', HTMLSelectElement)?.focus();
    return;
  }
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  if (link.hasAttribute("data-results")) {
    event.preventDefault();
    go(link.href, "push");
  } else if (link.hasAttribute("data-next")) {
    event.preventDefault();
    more(link);
  } else if (link.hasAttribute("data-panel")) {
    event.preventDefault();
    makeCurrent(link.closest("li"));
    open(link.href).then((there) => there && focusPanel());
  }
});

/** How long after the last key press the list is searched. */
const typingTime = 200;
let typing = 0;

for (const typed of ["input", "compositionend"]) {
  results.addEventListener(typed, (event) => {
    if (!(event.target instanceof HTMLInputElement) || event.target.name !== "text") return;
    clearTimeout(typing);
    event.target.setCustomValidity(""); // or Enter would not search again
    // Replacing the field would end a composition with an input method.
    if (event instanceof InputEvent && event.isComposing) asking?.abort();
    else typing = window.setTimeout(search, typingTime);
  });
}

// Enter would load the page anew, without the selection and the finding beside the list.
results.addEventListener("submit", (event) => {
  if (!(event.target instanceof HTMLFormElement) || !event.target.matches(".search")) return;
  event.preventDefault();
  clearTimeout(typing);
  search();
});

/** How many different words the service accepts in a search. */
const maxWords = 8;

function search() {
  const field = find("#text", HTMLInputElement);
  const form = field?.form;
  if (!form) return;
  const words = new Set(field.value.toLowerCase().match(/\S+/g));
  field.setCustomValidity(words.size > maxWords ? `A search has at most ${maxWords} words: leave some out.` : "");
  if (!field.reportValidity()) return;
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) query.set(name, String(value));
  go(`${form.action}?${query}`, "replace");
}

// --- The finding beside the list -----------------------------------------------------------------------------------

function focusPanel() {
  /** @type {HTMLElement | null} */ (panel.querySelector(".close"))?.focus();
}

panel.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.hasAttribute("data-decide")) return;
  event.preventDefault();
  const id = form.closest("article")?.dataset.id ?? "";
  const fields = submitted(form);
  const typed = typedIn(form);
  decide(id, fields, basisOf(id, fields.get("seen")), { typed, inPanel: form, again: () => openAgain(id, typed) });
});

watchEnd();
follow();
