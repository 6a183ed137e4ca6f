// The keys of the list: they move between rows, select and open them, and decide.
import { edits, fill, fillAsUnchanged, submitted, typedIn } from "../ui/forms.js";
import { find, message } from "../ui/ui.js";
import { basisOf, decide, refused, undo } from "./decisions.js";
import { about, openRow, panel, shut } from "./panel.js";
import { currentRow, idOf, results, titleOf, walk } from "./rows.js";
import { toggleSelected } from "./selection.js";

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

/** The label of the end where no mute is in force. */
const untilLabel = find('label[for="one-until"]', HTMLLabelElement)?.textContent ?? "";

/** By finding, what was typed into the dialog when it was closed by Esc.
 * @type {Map<string, URLSearchParams>} */
const drafts = new Map();

/** Asks for the reason, the end and the comment. The form begins with those of a mute in force, and with what was typed
 * before Esc or a refusal; an empty comment leaves the old one.
 * @param {HTMLElement} row */
function askWhy(row) {
  const dialog = find("#decision", HTMLDialogElement);
  const form = dialog?.querySelector("form");
  if (!dialog || !form) return;
  form.querySelector(".missing")?.replaceChildren();
  const basis = basisOf(idOf(row), row.dataset.seen);
  const { stands, reason = "", until = "" } = row.dataset;
  const isMuted = stands?.endsWith(" muted");
  const endLabel = (isMuted && row.dataset.untilLabel) || untilLabel;
  find('label[for="one-until"]', HTMLLabelElement)?.replaceChildren(endLabel);
  find("#decision-title", HTMLHeadingElement)?.replaceChildren(`Decide: ${titleOf(row)?.textContent ?? idOf(row)}`);
  // Where no mute is in force, the choice to mute is the person's, with the reason and the end also if they stay empty.
  const before = isMuted ? { user_status: "muted", reason, until } : { user_status: "", reason: "", until: "" };
  fillAsUnchanged(form, new URLSearchParams({ ...before, comments: "" }));
  fill(form, new URLSearchParams({ user_status: "muted" }));
  fill(form, drafts.get(idOf(row)) ?? refused(idOf(row)) ?? new URLSearchParams());
  dialog.returnValue = "";
  // Not on close, which may come when the dialog is about another finding already.
  dialog.oncancel = () => {
    const typed = edits(form);
    typed.delete("user_status"); // the key mutes, also the next time
    if (typed.size > 0) drafts.set(idOf(row), typed);
    else drafts.delete(idOf(row));
  };
  dialog.onclose = () => {
    if (dialog.returnValue) drafts.delete(idOf(row));
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
