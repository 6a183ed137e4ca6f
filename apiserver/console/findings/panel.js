// The finding beside the list.
import { edits, fill, fillAsUnchanged, isUndecided } from "../ui/forms.js";
import { ask, askFragment, button, fragment, report } from "../ui/ui.js";
import { addressOf, rowOf, makeCurrent, currentRow, titleOf } from "./rows.js";

export const panel = /** @type {HTMLElement} */ (document.querySelector("#panel"));

/** @type {AbortController | undefined} The current request; it aborts the one before. */
let asking;

/** The id of the finding that is being loaded, if any. */
let wanted = "";

/** The id of the finding that is shown, if any. */
export const shownId = () => panel.querySelector("article")?.dataset.id ?? "";

/** The id of the finding that the panel shows, or is about to show. */
export const about = () => wanted || shownId();

/** By finding, what was typed into its form when another one was opened, or the panel was closed.
 * @type {Map<string, {typed: URLSearchParams, decided: boolean}>} */
const drafts = new Map();

/** Keeps what was typed into the form until its finding is shown again, unless it is being sent. */
function putAside() {
  const left = form();
  if (!left || left.hasAttribute("data-sending") || edits(left).size === 0) return;
  drafts.set(shownId(), { typed: edits(left), decided: !isUndecided(left) });
}

/** Fills the form of the shown finding with what was typed into it before. */
function takeUp() {
  const draft = drafts.get(shownId());
  drafts.delete(shownId());
  if (draft) unfold(draft.typed, draft.decided);
}

/** The last part of a finding's address, its id.
 * @param {string} url */
const nameIn = (url) => new URL(url, location.href).pathname.split("/").pop() ?? "";

/** Shows a finding. The values typed into its form stay, and if it is shown already, the focus too. Reports whether no
 * other one was opened meanwhile.
 * @param {string} url
 * @param {{typed?: URLSearchParams | null, rest?: number}} [options] `typed` are the values for a form that is shown
 * already, instead of those typed now; null leaves it as the server has filled it. `rest` is the delay of the request in
 * milliseconds: opening another finding meanwhile cancels it. */
export async function open(url, { typed, rest = 0 } = {}) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const id = decodeURIComponent(nameIn(url));
  wanted = id;
  panel.ariaBusy = "true"; // until then it shows another finding, or an old state
  try {
    if (rest > 0) await new Promise((over) => setTimeout(over, rest));
    signal.throwIfAborted();
    const text = await (await ask(url, { signal })).text();
    if (signal.aborted) return false;
    const close = button("Close", shut, { className: "close" });
    const page = Object.assign(document.createElement("a"), { href: url, className: "page", textContent: "Open as a page" });
    const isShown = shownId() === id;
    if (!isShown) putAside();
    const restore = isShown ? keep(typed) : takeUp;
    panel.replaceChildren(close, page, fragment(text));
    panel.hidden = false;
    panel.scrollTop = 0;
    remember(url);
    restore();
    return true;
  } catch (error) {
    report(error);
    return false;
  } finally {
    if (asking.signal === signal) {
      wanted = "";
      panel.ariaBusy = "false";
    }
  }
}

/** Shows the finding of the current row.
 * @param {number} [rest] As for `open`. */
export function openRow(rest) {
  const row = currentRow();
  const title = row && titleOf(row);
  if (title instanceof HTMLAnchorElement) open(title.href, { rest });
}

/** Makes the row of the panel's finding the current one, if the list has it: keys must apply to the finding one sees. */
export function makeShownCurrent() {
  const row = rowOf(about());
  if (row) makeCurrent(row);
}

/** Reloads the finding if the panel shows it, unless another one is being loaded.
 * @param {string} id
 * @param {URLSearchParams | null} [typed] As for `open`. */
export async function refresh(id, typed) {
  if (shownId() === id && about() === id) await open(addressOf(id), { typed });
}

/** Shows a finding with the values that were typed into its form before.
 * @param {string} id @param {URLSearchParams} typed */
export async function openAgain(id, typed) {
  if (!(await open(addressOf(id)))) return;
  makeShownCurrent();
  const fresh = unfold(typed, true);
  /** @type {HTMLElement | null | undefined} */ (fresh?.querySelector('[name="user_status"]'))?.focus();
}

/** Unfolds the form of the shown finding, filled with the values.
 * @param {URLSearchParams} typed
 * @param {boolean} decided Whether the choice is that of a decision in force if it is not among the values. If there is
 * no decision any more, it is open: the browser would choose the first option, which mutes. */
function unfold(typed, decided) {
  const fresh = form();
  if (!fresh) return null;
  // As unchanged: nobody chose it, and the next reload must not keep it.
  if (decided && isUndecided(fresh)) fillAsUnchanged(fresh, new URLSearchParams({ user_status: "open" }));
  fill(fresh, typed);
  fresh.closest("details")?.setAttribute("open", "");
  return fresh;
}

/** Remembers the values typed into the form, and the focus. Returns a function that restores both in the new form.
 * @param {URLSearchParams | null} [typed] */
function keep(typed) {
  const before = form();
  const values = typed === undefined ? before && edits(before) : typed;
  const decided = Boolean(typed || (before && !isUndecided(before)));
  const unfolded = Boolean(typed || (values && before?.closest("details")?.open));
  const active = panel.contains(document.activeElement) ? document.activeElement : null;
  const field = active && before?.contains(active) ? active.getAttribute("name") || "user_status" : "";
  return () => {
    const fresh = values && unfolded ? unfold(values, decided) : null;
    const focused = fresh && field ? fresh.querySelector(`[name="${field}"]`) : panel.querySelector(".close");
    if (active && focused instanceof HTMLElement) focused.focus();
  };
}

/** The form of the finding that is shown. */
const form = () => /** @type {HTMLFormElement | null} */ (panel.querySelector("form[data-decide]"));

/** The text of a finding's page without times, which change by themselves, and without its history, which is always
 * replaced.
 * @param {Element} article */
function words(article) {
  const copy = /** @type {Element} */ (article.cloneNode(true));
  for (const part of copy.querySelectorAll("time, [aria-labelledby=history]")) part.remove();
  const seen = copy.querySelector('input[name="seen"]')?.getAttribute("value");
  return `${seen} ${copy.textContent?.replace(/\s+/g, " ")}`;
}

/** Marks the shown finding as changed, if it has changed. The values typed into its form stay.
 * @param {string} id @param {boolean} removed @returns {Promise<boolean>} Whether it was marked. */
export async function markShown(id, removed) {
  const shown = panel.querySelector("article");
  if (panel.hidden || shown?.dataset.id !== id || panel.querySelector(".news-of")) return false;
  if (!removed) {
    const now = (await askFragment(addressOf(id))).querySelector("article");
    if (!now || !shown.isConnected || panel.querySelector(".news-of")) return false;
    if (words(now) === words(shown)) {
      const happened = "[aria-labelledby=history]";
      const before = shown.querySelector(happened);
      const after = now.querySelector(happened);
      if (before && after && !before.contains(document.activeElement)) before.replaceWith(after);
      return false;
    }
  }
  const text = removed ? "removed · close" : "changed · show";
  shown.before(button(text, () => removed ? shut() : refresh(id), { className: "news-of" }));
  return true;
}

/** Closes the panel. The browser's Back then leads to the page before the list, and not to the panel again. */
export function shut() {
  hide();
  if (history.state?.panel) history.back();
  else if (location.hash) history.replaceState(null, "", location.pathname + location.search);
}

function hide() {
  asking?.abort();
  if (panel.hidden) return;
  putAside();
  panel.hidden = true;
  panel.replaceChildren();
  const row = currentRow();
  if (row) titleOf(row)?.focus({ preventScroll: true });
}

/** Keeps the finding that is shown in the address, so that Back closes it, and a copied address shows it.
 * @param {string} url */
function remember(url) {
  const hash = `#${nameIn(url)}`;
  if (location.hash === hash) return;
  if (location.hash) {
    history.replaceState(history.state, "", hash);
    return;
  }
  // Closing the panel must not scroll the list back to where it was when the panel was opened.
  history.scrollRestoration = "manual";
  history.pushState({ panel: true }, "", hash);
}

// Back from another page restores the position in the list.
window.addEventListener("pagehide", () => {
  history.scrollRestoration = "auto";
});

/** The id of the finding that the address names; "" for a damaged address. */
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/** Shows the finding that the address names, or none. It may name another part of the page, such as the content. */
export async function follow() {
  const id = named();
  if (document.getElementById(id)?.matches(":not(.row)")) return;
  if (!id) hide();
  else if (shownId() === id || await open(addressOf(id))) makeShownCurrent();
}
