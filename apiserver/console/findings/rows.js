// The rows of the list, and the current one, which keys apply to.
import { ask, fragment } from "../ui/ui.js";

export const results = /** @type {HTMLElement} */ (document.querySelector("#results"));

/** @type {HTMLElement | null} The current row, which keys apply to. */
let current = null;

/** @returns {HTMLElement | null} The current row, if it is still shown: its group may have been closed. */
export function currentRow() {
  return current?.isConnected && !current.closest("details:not([open])") ? current : null;
}

/** @param {Element | null} row */
export function makeCurrent(row) {
  current?.classList.remove("at");
  current = row instanceof HTMLElement ? row : null;
  current?.classList.add("at");
}

/** @param {Element} row @returns {HTMLElement | null} */
export const titleOf = (row) => row.querySelector("[data-panel]");

/** What comes before a finding's id in that of its row. Without it, a finding could be named like a part of the page. */
const rowPrefix = "finding-";

/** @param {string} id The id of a finding. @returns {HTMLElement | null} */
export const rowOf = (id) => document.getElementById(rowPrefix + id);

/** @param {Element} row @returns The id of its finding. */
export const idOf = (row) => row.id.slice(rowPrefix.length);

/** Moves to the next or previous row, or to the first one if there is no current row. Reports whether there is one.
 * @param {1 | -1} step */
export function walk(step) {
  const rows = [...results.querySelectorAll(".row:not(details:not([open]) .row)")];
  const from = currentRow();
  const next = rows[from ? rows.indexOf(from) + step : 0];
  if (!next) return false;
  makeCurrent(next);
  next.scrollIntoView({ block: "nearest" });
  titleOf(next)?.focus({ preventScroll: true });
  return true;
}

// Tab and the mouse make a row the current one, too.
results.addEventListener("focusin", (event) => {
  const row = event.target instanceof Element ? event.target.closest(".row") : null;
  if (row) makeCurrent(row);
});

/** Returns the row in the HTML that the console has sent.
 * @param {string} html */
export const rowIn = (html) => /** @type {HTMLElement} */ (fragment(html).firstElementChild);

/** Reports whether a row is older than another row of the same finding: replicas may lag, and answers may be late.
 * @param {HTMLElement} row @param {HTMLElement} than */
export const isOlder = (row, than) => (row.dataset.updated ?? "") < (than.dataset.updated ?? "");

/** Replaces a row by its newer version.
 * @param {HTMLElement} row @param {HTMLElement} fresh */
export function replaceRow(row, fresh) {
  const wasCurrent = row === currentRow();
  const focused = row.contains(document.activeElement);
  const box = /** @type {HTMLInputElement | null} */ (fresh.querySelector('input[name="id"]'));
  if (box) box.checked = Boolean(row.querySelector('input[name="id"]:checked'));
  row.replaceWith(fresh);
  if (wasCurrent) makeCurrent(fresh);
  if (focused) titleOf(fresh)?.focus({ preventScroll: true });
}

/** The address of a finding.
 * @param {string} id */
export const addressOf = (id) => `/console/findings/${encodeURIComponent(id)}`;

/** @param {string} id The id of a finding. @returns Its row as it is now. */
export async function freshRow(id) {
  return rowIn((await (await ask(`${addressOf(id)}/row`)).json()).row);
}
