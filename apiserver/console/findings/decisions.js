// Decisions about one finding: sent one after the other, each undone by u.
import { ask, fragment, message, Refusal, report } from "../ui/ui.js";
import { panel, refresh } from "./panel.js";
import { replaceRow, titleOf } from "./rows.js";

/** @typedef {{user_status: string, reason?: string, expires_at?: string, comments: string}} Change */

/** @type {{id: string, change: Change, seen: string}[]} What the last decisions are undone by. */
const undos = [];

/** @type {Promise<unknown>} Each rests on what the one before has made. */
let sending = Promise.resolve();

/** @type {Map<string, {typed?: URLSearchParams, shown?: HTMLElement}>} The findings whose last decision was refused: what
 * was typed into the dialog, and the message. */
const refusals = new Map();

/** What was typed into the dialog about a finding and refused.
 * @param {string} id */
export const refused = (id) => refusals.get(id)?.typed;

/** What a decision is called in a row.
 * @type {Record<string, string>} */
const standings = { muted: "muted", active: "confirmed", open: "open" };

/** Decides about a finding. The row shows it at once, and then what came of it.
 * @param {string} id @param {URLSearchParams} form
 * @param {{inPanel?: boolean, again?: (row?: HTMLElement) => void}} [from] Whether the form is the panel's; else what
 * shows it again after a refusal, with the finding's row as it then is. */
export function decide(id, form, { inPanel, again } = {}) {
  const restore = anticipate(id, form.get("user_status") ?? "");
  const row = document.getElementById(id);
  const title = (row ? titleOf(row) : panel.querySelector("h1"))?.textContent ?? id;
  enqueue(async () => {
    try {
      const answer = await send(id, form, inPanel);
      undos.push({ id, change: answer.undo, seen: answer.seen });
      refusals.get(id)?.shown?.remove();
      refusals.delete(id);
      message(`Decided: ${title}.`, { action: "Undo (u)", run: undo });
    } catch (error) {
      restore();
      refusals.get(id)?.shown?.remove();
      const shown = report(error, again && { action: "Decide again", run: () => again(rowOf(id, error)) });
      shown?.prepend(Object.assign(document.createElement("strong"), { textContent: title }));
      refusals.set(id, { typed: again && form, shown });
    }
  });
}

/** The row of a finding: as the list shows it, or else as a refusal did.
 * @param {string} id @param {unknown} error */
function rowOf(id, error) {
  const said = error instanceof Refusal && error.said.row ? fragment(error.said.row).firstElementChild : null;
  return document.getElementById(id) ?? (said instanceof HTMLElement ? said : undefined);
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
    await send(last.id, form);
    undos.pop();
    message("Undone.");
  });
}

/** @param {() => Promise<void>} step */
function enqueue(step) {
  sending = sending.then(step).catch(report);
}

/** Shows a decision before it is made, and returns what takes that back.
 * @param {string} id @param {string} status */
function anticipate(id, status) {
  const badge = document.getElementById(id)?.querySelector(".state .badge");
  if (!badge || !standings[status]) return () => {};
  const before = { text: badge.textContent, class: badge.className };
  badge.textContent = standings[status];
  badge.className = `badge is-${standings[status]}`;
  return () => {
    badge.textContent = before.text;
    badge.className = before.class;
  };
}

/** Sends a decision and shows the row as it then is, also where somebody else decided first.
 * @param {string} id @param {URLSearchParams} form @param {boolean} [inPanel] Whether the form is the panel's.
 * @returns {Promise<{undo: Change, seen: string, row: string}>} */
async function send(id, form, inPanel) {
  const row = document.getElementById(id);
  if (row?.dataset.seen && !form.has("seen")) form.set("seen", row.dataset.seen);
  try {
    const answer = await (await ask(`/console/findings/${encodeURIComponent(id)}`, { form })).json();
    if (row) replaceRow(row, answer.row);
    refresh(id, inPanel ? null : undefined);
    return answer;
  } catch (error) {
    if (error instanceof Refusal && error.said.row) {
      if (row) replaceRow(row, error.said.row);
      refresh(id, inPanel ? form : undefined);
    }
    throw error;
  }
}
