// The list of findings: filters and search without reloading the page, the finding beside the list, keys and selection.
import { edits, fill, fillAsUnchanged, submitted, typedIn } from "../ui/forms.js";
import { ask, fragment, message, report, say } from "../ui/ui.js";
import { basisOf, decide, refused, undo } from "./decisions.js";
import { beginListing, beginRows } from "./live.js";
import { more, watchEnd } from "./more.js";
import { about, follow, open, openAgain, openRow, panel, shut, makeShownCurrent } from "./panel.js";
import { idOf, results, rowOf, makeCurrent, currentRow, titleOf, walk } from "./rows.js";

/** @template {Element} T @param {string} selector @param {new () => T} type @returns {T | null} */
function find(selector, type) {
  const found = document.querySelector(selector);
  return found instanceof type ? found : null;
}

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
    // Replacing the field would end a composition with an input method.
    if (event instanceof InputEvent && event.isComposing) asking?.abort();
    else typing = window.setTimeout(search, typingTime);
  });
}

function search() {
  const form = find("#text", HTMLInputElement)?.form;
  if (!form) return;
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

// --- Decisions by key ----------------------------------------------------------------------------------------------

/** Decides about the selection, or about the current row. Without a current row it only moves to the first one.
 * @param {string} status */
function decideBy(status) {
  if (!find("#decision", HTMLDialogElement)) {
    message("Your API key cannot decide: it lacks the scope findings:triage.", { wrong: true });
    return;
  }
  const bar = find(".selection", HTMLFieldSetElement); // an empty list has none
  if (bar && results.querySelector('.row input[name="id"]:checked, input[name="all"]:checked')) {
    const decision = /** @type {HTMLSelectElement} */ (bar.querySelector('[name="user_status"]'));
    decision.value = status;
    decision.focus();
    return;
  }
  const row = currentRow();
  if (about() && about() !== (row && idOf(row))) {
    const why = "keys decide about a row, and the finding beside the list is another one";
    message(`Nothing was decided: ${why}. Close it, or decide in its form.`, { wrong: true });
  } else if (!row) walk(1);
  else if (status === "muted") askWhy(row);
  else decide(idOf(row), new URLSearchParams({ user_status: status }), basisOf(idOf(row), row.dataset.seen));
}

/** Asks for the reason, the end and the comment. The form begins with those of a mute in force, and with what was typed
 * before a refusal; an empty comment leaves the old one.
 * @param {HTMLElement} row */
function askWhy(row) {
  const dialog = find("#decision", HTMLDialogElement);
  const form = dialog?.querySelector("form");
  if (!dialog || !form) return;
  form.querySelector(".missing")?.replaceChildren();
  const basis = basisOf(idOf(row), row.dataset.seen);
  const { stands, reason = "", until = "" } = row.dataset;
  find("#decision-title", HTMLHeadingElement)?.replaceChildren(`Decide: ${titleOf(row)?.textContent ?? idOf(row)}`);
  // Where no mute is in force, the choice to mute is the person's, with the reason and the end also if they stay empty.
  const isMuted = stands?.endsWith(" muted");
  const before = isMuted ? { user_status: "muted", reason, until } : { user_status: "", reason: "", until: "" };
  fillAsUnchanged(form, new URLSearchParams({ ...before, comments: "" }));
  fill(form, new URLSearchParams({ user_status: "muted" }));
  fill(form, refused(idOf(row)) ?? new URLSearchParams());
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "decide") return;
    const fields = submitted(form);
    if (!fields.get("comments")) fields.delete("comments");
    decide(idOf(row), fields, basis, { typed: typedIn(form), again: (now) => askWhy(now ?? row) });
  };
  dialog.showModal();
  // Not the reason: pressing the same key again would choose one by its first letter.
  /** @type {HTMLSelectElement} */ (form.elements.namedItem("user_status")).focus();
}

// Enter decides, and Shift+Enter begins a new line of the comment.
find("#decision", HTMLDialogElement)?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.target instanceof HTMLButtonElement) return;
  event.preventDefault();
  const form = event.currentTarget instanceof HTMLElement ? event.currentTarget.querySelector("form") : null;
  form?.requestSubmit(form.querySelector("button"));
});

// --- Selection -----------------------------------------------------------------------------------------------------

results.addEventListener("change", (event) => {
  if (event.target instanceof HTMLInputElement && ["id", "all"].includes(event.target.name)) showSelection();
});

function showSelection() {
  const bar = find(".selection", HTMLFieldSetElement);
  const said = find("#selected", HTMLParagraphElement);
  if (!bar || !said) return;
  const count = results.querySelectorAll('.row input[name="id"]:checked').length;
  const every = find('input[name="all"]', HTMLInputElement);
  const all = Boolean(every?.checked);
  const tooMany = !all && count > Number(bar.dataset.most);
  said.textContent = all
    ? `${every?.dataset.total} chosen; nothing is decided until you apply.`
    : `${count} selected. Press x to select more.`;
  bar.classList.toggle("used", count > 0 || all);
  find("#too-many", HTMLParagraphElement)?.toggleAttribute("hidden", !tooMany);
  bar.querySelector("button")?.toggleAttribute("disabled", tooMany);
}

/** Changes the results and keeps the selection of findings that are still listed, and the values typed about it. A
 * message says what is no longer selected.
 * @param {() => void} change */
function keepSelection(change) {
  const chosen = [...results.querySelectorAll('.row:has(input[name="id"]:checked)')].map(idOf);
  const all = results.querySelector('input[name="all"]:checked') !== null;
  const form = find("#selection", HTMLFormElement);
  const typed = form && edits(form);
  change();
  if (chosen.length === 0 && !all) return;
  let kept = 0;
  for (const id of chosen) {
    const box = rowOf(id)?.querySelector('input[name="id"]');
    if (!(box instanceof HTMLInputElement)) continue;
    box.checked = true;
    kept++;
  }
  const fresh = find("#selection", HTMLFormElement);
  if (fresh && typed && (kept > 0 || results.querySelector('input[name="all"]:checked'))) fill(fresh, typed);
  if (kept > 0) showSelection();
  const lost = chosen.length - kept;
  if (all && !results.querySelector('input[name="all"]:checked')) message("What matched before is no longer selected.");
  else if (lost > 0) message(`${lost} selected ${lost === 1 ? "finding is" : "findings are"} not shown any more and no longer selected.`);
}

function toggleSelected() {
  if (!currentRow()) walk(1);
  /** @type {HTMLInputElement | null | undefined} */ (currentRow()?.querySelector('input[name="id"]'))?.click();
}

// --- Keys ----------------------------------------------------------------------------------------------------------

/** How long a row must be current, in milliseconds, until its finding is loaded while a key is held down: each request
 * counts against the key's limit. */
const heldTime = 150;

/** @param {1 | -1} step @param {boolean} held */
function step(step, held) {
  if (walk(step) && !panel.hidden) openRow(held ? heldTime : 0);
}

/** @type {Record<string, (held: boolean) => void>} */
const actions = {
  j: (held) => step(1, held),
  k: (held) => step(-1, held),
  x: toggleSelected,
  m: () => decideBy("muted"),
  c: () => decideBy("active"),
  o: () => decideBy("open"),
  u: () => undo(),
  "/": () => find("#text", HTMLInputElement)?.focus(),
  "?": () => find("#help", HTMLDialogElement)?.showModal(),
};

/** Keys that may be held down. */
const repeated = ["j", "k"];

/** The name under which the browser keeps the choice to use no keys. */
const keysChoice = "findings-console-keys";

const useKeys = find("#use-keys", HTMLInputElement);
if (useKeys) {
  useKeys.checked = localStorage.getItem(keysChoice) !== "off";
  useKeys.addEventListener("change", () => localStorage.setItem(keysChoice, useKeys.checked ? "on" : "off"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typed = event.target instanceof HTMLElement && event.target.matches('input:not([type="checkbox"]), select, textarea');
  if (typed) {
    if (event.key !== "Escape") return;
    // The browser would empty the search.
    if (event.target instanceof HTMLInputElement && event.target.type === "search") event.preventDefault();
    /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  if (event.key === "Escape" && !panel.hidden) {
    shut();
    return;
  }
  // Enter would send the form.
  if (event.key === "Enter" && event.target instanceof HTMLInputElement && event.target.name === "id") {
    event.preventDefault();
    openRow();
    return;
  }
  const act = actions[event.key];
  if (!act || (useKeys && !useKeys.checked && event.key !== "?") || (event.repeat && !repeated.includes(event.key))) return;
  event.preventDefault();
  act(event.repeat);
});

watchEnd();
follow();
