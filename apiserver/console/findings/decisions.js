// Decisions about one finding: sent one after the other, each undone by u.
import { ask, message, Refusal, report } from "../ui/ui.js";
import { about, panel, refresh } from "./panel.js";
import { addressOf, freshRow, replaceRow, rowIn, rowOf, titleOf } from "./rows.js";

/** @typedef {{user_status: string, reason?: string, expires_at?: string, comments: string}} Change */

/** @type {{id: string, title: string, change: Change, seen: string}[]} What the last decisions are undone by. */
const undos = [];

/** @type {Promise<unknown>} Each rests on what the one before has made. */
let sending = Promise.resolve();

/** How many decisions have no answer yet. */
let unanswered = 0;

/** @type {Map<string, string>} What this page's last decision about each finding has made of it. */
const made = new Map();

/** @type {Map<string, {typed?: URLSearchParams, shown?: HTMLElement}>} The findings whose last decision was refused: what
 * was typed into the dialog or the panel, and the message. */
const refusals = new Map();

/** What was typed about a finding and refused.
 * @param {string} id */
export const refused = (id) => refusals.get(id)?.typed;

/** What a decision is called in a row.
 * @type {Record<string, string>} */
const standings = { muted: "muted", active: "confirmed", open: "open" };

/** What a decision rests on: what was shown, and what this page's last decision had made of the finding by then.
 * @typedef {{seen?: string | null, made?: string}} Basis */

/** What a decision made now about a finding rests on.
 * @param {string} id @param {string | null} [seen] @returns {Basis} */
export const basisOf = (id, seen) => ({ seen, made: made.get(id) });

/** Decides about a finding. The row shows it at once, and then what came of it.
 * @param {string} id @param {URLSearchParams} form @param {Basis} basis
 * @param {{inPanel?: HTMLFormElement, again?: (row?: HTMLElement) => void}} [from] The form if it is the panel's, and what
 * shows it again after a refusal, with the finding's row as it then is. */
export function decide(id, form, basis, { inPanel, again } = {}) {
  const restore = anticipate(id, form.get("user_status") ?? "");
  const row = rowOf(id);
  const title = (row ? titleOf(row) : panel.querySelector("h1"))?.textContent ?? id;
  enqueue(async () => {
    // It also rests on this page's own decisions since. What others decided was not seen.
    const now = made.get(id);
    const known = now === basis.made ? basis.seen : now;
    if (known) form.set("seen", known);
    try {
      const answer = await send(id, form, inPanel);
      if (answer.undo) undos.push({ id, title, change: answer.undo, seen: answer.seen });
      refusals.get(id)?.shown?.remove();
      refusals.delete(id);
      message(`${answer.changed ? "Decided" : "It was decided so already"}: ${title}.`, answer.undo && { action: "Undo (u)", run: undo });
    } catch (error) {
      restore();
      refusals.get(id)?.shown?.remove();
      // The panel keeps what is typed into its form while it shows that form.
      const isThere = inPanel?.isConnected && about() === id;
      const offer = again && !isThere && { action: "Decide again", run: () => again(rowAfter(id, error)) };
      const shown = reportAbout(title, error, offer || undefined);
      refusals.set(id, { typed: again && form, shown });
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

/** The row of a finding after a refusal: as the list shows it, or else as the refusal did.
 * @param {string} id @param {unknown} error */
function rowAfter(id, error) {
  const said = error instanceof Refusal && error.said.row ? rowIn(error.said.row) : undefined;
  return rowOf(id) ?? said;
}

/** Puts back what the last decision has changed. It waits for decisions that are on their way. */
export function undo() {
  enqueue(async () => {
    const last = undos.at(-1);
    if (!last) {
      message("There is nothing to undo.");
      return;
    }
    const { change } = last;
    const form = new URLSearchParams({
      user_status: change.user_status,
      comments: change.comments,
      seen: last.seen,
      exactly: "",
    });
    if (change.reason !== undefined) form.set("reason", change.reason);
    if (change.expires_at !== undefined) form.set("until", change.expires_at);
    try {
      await send(last.id, form);
      undos.pop();
      message(`Undone: ${last.title}.`);
    } catch (error) {
      // What was decided by others, is gone, or is no longer allowed (without a reason, or past its end) stays as it is.
      if (error instanceof Refusal && [400, 404, 409].includes(error.status)) undos.pop();
      reportAbout(last.title, error);
    }
  });
}

/** @param {() => Promise<void>} step */
function enqueue(step) {
  unanswered++;
  sending = sending.then(step).catch(report).finally(() => unanswered--);
}

// Who leaves the page now would lose decisions that it shows already.
window.addEventListener("beforeunload", (event) => {
  if (unanswered > 0) event.preventDefault();
});

/** Shows a decision before it is made, and returns what takes that back.
 * @param {string} id @param {string} status */
function anticipate(id, status) {
  const badge = rowOf(id)?.querySelector(".state .badge");
  if (!(badge instanceof HTMLElement) || !standings[status]) return () => {};
  // Another decision may be shown already that is not made yet.
  badge.dataset.stored ??= badge.textContent ?? "";
  badge.textContent = standings[status];
  badge.className = `badge is-${standings[status]}`;
  return () => {
    badge.textContent = badge.dataset.stored ?? "";
    badge.className = `badge is-${badge.dataset.stored}`;
  };
}

/** Sends a decision and shows the row as it then is, also where somebody else decided first.
 * @param {string} id @param {URLSearchParams} form @param {HTMLFormElement} [inPanel] The form if it is the panel's.
 * @returns {Promise<{changed?: boolean, undo?: Change, seen: string, row: string}>} `undo` is missing where it would do nothing. */
async function send(id, form, inPanel) {
  try {
    const answer = await (await ask(addressOf(id), { form })).json();
    made.set(id, answer.seen);
    putRow(id, rowIn(answer.row));
    refresh(id, inPanel?.isConnected ? null : undefined);
    return answer;
  } catch (error) {
    // A response of a gateway, which is no page of ours, does not tell either whether the decision was stored.
    if (!(error instanceof Refusal) || (error.status >= 502 && !error.said.title)) {
      sending = sending.then(() => look(id)).catch(report); // nothing is lost without it, so it is not counted
      const next = "Load the page again to see whether it has stored the decision.";
      throw new Error(`The service did not answer. ${next}`, { cause: error });
    }
    if (error.said.row) {
      putRow(id, rowIn(error.said.row));
      refresh(id, inPanel?.isConnected ? form : undefined);
    }
    throw error;
  }
}

/** Shows a row as it is now, where nobody knows what became of a decision. What to do if this fails too has been said.
 * @param {string} id */
async function look(id) {
  const now = await freshRow(id).catch(() => undefined);
  if (now) putRow(id, now);
}

/** Puts a finding's row in the place of the one that the list has by now, if any: the list may be another one since the
 * row was asked for.
 * @param {string} id @param {HTMLElement} fresh */
function putRow(id, fresh) {
  const row = rowOf(id);
  if (row) replaceRow(row, fresh);
}
