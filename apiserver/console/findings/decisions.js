// Decisions about single findings: sent one after the other; u undoes the last one.
import { typedIn } from "../ui/forms.js";
import { ask, message, Refusal, report } from "../ui/ui.js";
import { about, panel, refresh } from "./panel.js";
import { addressOf, freshRow, replaceRow, rowIn, rowOf, titleOf } from "./rows.js";

/** @typedef {{user_status: string, reason?: string, expires_at?: string, comments: string}} Change */

/** A decision made on this page. Its answer says how to undo it: the change, and the state that it was based on; or why it
 * cannot be undone. `shown` is the message about a failed undo.
 * @typedef {{id: string, title: string, change?: Change, seen?: string, why?: string, undone?: boolean,
 * shown?: HTMLElement}} Decision */

/** @type {Decision[]} The decisions, the last one last. `undone` is set as soon as one is to be undone. */
const decisions = [];

/** @type {Promise<unknown>} The last decision to be sent. Each is based on the result of the one before. */
let sending = Promise.resolve();

/** How many decisions have no answer yet. */
let unanswered = 0;

/** @type {Map<string, string>} By finding, the state that this page's last decision has led to. */
const made = new Map();

/** @type {Map<string, {typed?: URLSearchParams, shown?: HTMLElement}>} The findings whose last decision was refused: what
 * was typed into the dialog or the panel, and the message. */
const refusals = new Map();

/** The values that were typed about a finding and refused.
 * @param {string} id */
export const refused = (id) => refusals.get(id)?.typed;

/** The words for decisions in a row.
 * @type {Record<string, string>} */
const statusWords = { muted: "muted", active: "confirmed", open: "open" };

/** What a decision is based on: the state that was shown, and the one that this page's last decision had led to by then.
 * @typedef {{seen?: string | null, made?: string}} Basis */

/** Returns what a decision about a finding is based on if it is made now.
 * @param {string} id @param {string | null} [seen] @returns {Basis} */
export const basisOf = (id, seen) => ({ seen, made: made.get(id) });

/** Decides about a finding. The row shows the decision at once, and then its result.
 * @param {string} id @param {URLSearchParams} form @param {Basis} basis
 * @param {{typed?: URLSearchParams, inPanel?: HTMLFormElement, again?: (row?: HTMLElement) => void}} [from] What was
 * typed into a form, the form if it is the panel's, and a function that shows it again after a refusal, with the finding's
 * current row. */
export function decide(id, form, basis, { typed, inPanel, again } = {}) {
  const restore = anticipate(id, form.get("user_status") ?? "");
  const row = rowOf(id);
  const heading = (row ? titleOf(row) : panel.querySelector("h1"))?.textContent ?? id;
  const title = heading.replace(/\.$/, ""); // messages end their sentences themselves
  /** @type {Decision} */
  const decision = { id, title };
  decisions.push(decision);
  inPanel?.setAttribute("data-sending", "");
  enqueue(async () => {
    // It is also based on this page's own decisions since, but not on those of others, which the person has not seen.
    const now = made.get(id);
    const known = now === basis.made ? basis.seen : now;
    if (known) form.set("seen", known);
    try {
      const answer = await send(id, form, inPanel);
      // One in doubt that is repeated is changed, too, but there is nothing to restore.
      const why = answer.changed ? "The same decision stood before." : "It was decided so already.";
      Object.assign(decision, { change: answer.undo, seen: answer.seen, why });
      refusals.get(id)?.shown?.remove();
      refusals.delete(id);
      message(`${answer.changed ? "Decided" : "It was decided so already"}: ${title}.`, answer.undo && { action: "Undo (u)", run: () => undo(decision) });
    } catch (error) {
      decision.why = isRefused(error) ? "The decision was not stored." : "It is not known whether it was decided.";
      restore();
      inPanel?.removeAttribute("data-sending");
      refusals.get(id)?.shown?.remove();
      // While the panel shows the form, it keeps what was typed.
      const isThere = inPanel?.isConnected && about() === id;
      const retry = again && !isThere && { action: "Decide again", run: () => again(rowAfter(id, error)) };
      const shown = reportAbout(title, error, retry || undefined);
      refusals.set(id, { typed, shown });
    }
  });
}

/** Shows what went wrong with a decision about the finding of that title.
 * @param {string} title @param {unknown} error @param {Parameters<typeof report>[1]} [options] */
function reportAbout(title, error, options) {
  const shown = report(error, options);
  shown?.prepend(Object.assign(document.createElement("strong"), { textContent: title }));
  return shown;
}

/** The row of a finding after a refusal: that of the list, or else that of the refusal.
 * @param {string} id @param {unknown} error */
function rowAfter(id, error) {
  const said = error instanceof Refusal && error.said.row ? rowIn(error.said.row) : undefined;
  return rowOf(id) ?? said;
}

/** Undoes a decision, after those that are being sent.
 * @param {Decision} [decision] Without one, the last decision that was not undone before. */
export function undo(decision = decisions.findLast((one) => !one.undone)) {
  if (!decision || decision.undone) {
    message("There is nothing to undo.");
    return;
  }
  decision.undone = true;
  decision.shown?.remove();
  enqueue(async () => {
    const { id, title, change, seen = "", why } = decision;
    if (!change) {
      message(`Nothing was undone: ${title}. ${why}`);
      return;
    }
    const since = decisions.slice(decisions.indexOf(decision) + 1);
    const later = since.findLast((d) => d.id === id && d.change && !d.undone);
    if (later) {
      decision.undone = false;
      message(`Nothing was undone: ${title}. You have decided about it again since: undo that first.`,
        { action: "Undo the later one", run: () => undo(later) });
      return;
    }
    const form = new URLSearchParams({ user_status: change.user_status, comments: change.comments, seen, exactly: "" });
    if (change.reason !== undefined) form.set("reason", change.reason);
    if (change.expires_at !== undefined) form.set("until", change.expires_at);
    try {
      await send(id, form);
      message(`Undone: ${title}.`);
    } catch (error) {
      // It cannot be undone: others have decided since, the finding is gone, or the old decision is no longer allowed.
      decision.undone = error instanceof Refusal && [400, 404, 409].includes(error.status);
      decision.shown = reportAbout(title, error, decision.undone ? undefined : { action: "Undo again", run: () => undo(decision) });
    }
  });
}

/** @param {() => Promise<void>} step */
function enqueue(step) {
  unanswered++;
  sending = sending.then(step).catch(report).finally(() => unanswered--);
}

// Leaving the page now would lose decisions that it shows already.
window.addEventListener("beforeunload", (event) => {
  if (unanswered > 0) event.preventDefault();
});

/** Shows a decision before it is stored. Returns a function that takes this back.
 * @param {string} id @param {string} status */
function anticipate(id, status) {
  const badge = rowOf(id)?.querySelector(".state .badge");
  if (!(badge instanceof HTMLElement) || !statusWords[status]) return () => {};
  // The badge may already show another decision that is not stored yet.
  badge.dataset.stored ??= badge.textContent ?? "";
  badge.textContent = statusWords[status];
  badge.className = `badge is-${statusWords[status]}`;
  return () => {
    badge.textContent = badge.dataset.stored ?? "";
    badge.className = `badge is-${badge.dataset.stored}`;
  };
}

/** Sends a decision and shows the resulting row, also if somebody else has decided first.
 * @param {string} id @param {URLSearchParams} form @param {HTMLFormElement} [inPanel] The form if it is the panel's.
 * @returns {Promise<{changed?: boolean, undo?: Change, seen: string, row: string}>} `undo` is missing if it would change nothing. */
async function send(id, form, inPanel) {
  try {
    const answer = await (await ask(addressOf(id), { form })).json();
    made.set(id, answer.seen);
    putRow(id, rowIn(answer.row));
    refresh(id, inPanel?.isConnected ? null : undefined);
    return answer;
  } catch (error) {
    if (!isRefused(error)) {
      sending = sending.then(() => reloadRow(id)).catch(report); // not counted as unanswered: leaving the page loses nothing
      // Unlike a gateway's answer, the console's own has a title, and says what to do.
      if (error instanceof Refusal && error.said.title) throw error;
      const next = "Load the page again to see whether it has stored the decision.";
      throw new Error(`The service did not answer. ${next}`, { cause: error });
    }
    if (error.said.row) {
      putRow(id, rowIn(error.said.row));
      refresh(id, inPanel?.isConnected ? typedIn(inPanel) : undefined);
    }
    throw error;
  }
}

/** Whether the service has refused a decision. Otherwise it may have stored it: without an answer nobody knows, and the
 * service may fail after that.
 * @param {unknown} error @returns {error is Refusal} */
const isRefused = (error) => error instanceof Refusal && error.status < 500;

/** Reloads a row after a decision that may have been stored. If this fails too, the message has already said what to do.
 * @param {string} id */
async function reloadRow(id) {
  const now = await freshRow(id).catch(() => undefined);
  if (now) putRow(id, now);
}

/** Replaces a finding's row in the list, if the list still has one: it may have been replaced since the request.
 * @param {string} id @param {HTMLElement} fresh */
function putRow(id, fresh) {
  const row = rowOf(id);
  if (row) replaceRow(row, fresh);
}
