// The rows of the list: the one that keys are about, and more of them as one scrolls.
import { ask, askFragment, fragment, report } from "../ui/ui.js";

export const results = /** @type {HTMLElement} */ (document.querySelector("#results"));

/** @type {HTMLElement | null} The row that keys are about. */
let at = null;

/** @returns {HTMLElement | null} The row that keys are about, if it is still shown: its group may have been closed. */
export function standing() {
  return at?.isConnected && !at.closest("details:not([open])") ? at : null;
}

/** @param {Element | null} row */
export function stand(row) {
  at?.classList.remove("at");
  at = row instanceof HTMLElement ? row : null;
  at?.classList.add("at");
}

/** @param {Element} row @returns {HTMLElement | null} */
export const titleOf = (row) => row.querySelector("[data-panel]");

/** @param {string} id The id of a finding. @returns {HTMLElement | null} */
export function rowOf(id) {
  const row = document.getElementById(id);
  return row?.classList.contains("row") ? row : null;
}

/** Goes to another row, or to the first one from nowhere. Reports whether there is one.
 * @param {1 | -1} step */
export function walk(step) {
  const rows = [...results.querySelectorAll(".row:not(details:not([open]) .row)")];
  const from = standing();
  const next = rows[from ? rows.indexOf(from) + step : 0];
  if (!next) return false;
  stand(next);
  next.scrollIntoView({ block: "nearest" });
  titleOf(next)?.focus({ preventScroll: true });
  return true;
}

// Whoever comes to a row by Tab or by mouse stands on it too.
results.addEventListener("focusin", (event) => {
  const row = event.target instanceof Element ? event.target.closest(".row") : null;
  if (row) stand(row);
});

/** Returns the row that the console has sent.
 * @param {string} html */
export const rowIn = (html) => /** @type {HTMLElement} */ (fragment(html).firstElementChild);

/** Reports whether a row is older than another of the same finding: replicas may be behind, and answers may be late.
 * @param {HTMLElement} row @param {HTMLElement} than */
export const isOlder = (row, than) => (row.dataset.updated ?? "") < (than.dataset.updated ?? "");

/** Puts a row as the console now shows it in the place of the one before.
 * @param {HTMLElement} row @param {HTMLElement} fresh */
export function replaceRow(row, fresh) {
  const wasAt = row === standing();
  const focused = row.contains(document.activeElement);
  const box = /** @type {HTMLInputElement | null} */ (fresh.querySelector('input[name="id"]'));
  if (box) box.checked = Boolean(row.querySelector('input[name="id"]:checked'));
  row.replaceWith(fresh);
  if (wasAt) stand(fresh);
  if (focused) titleOf(fresh)?.focus({ preventScroll: true });
}

/** The address of a finding.
 * @param {string} id */
export const addressOf = (id) => `/console/findings/${encodeURIComponent(id)}`;

/** @param {string} id The id of a finding. @returns Its row as it is now. */
export async function freshRow(id) {
  return rowIn((await (await ask(`${addressOf(id)}/row`)).json()).row);
}

/** Puts the next rows in the place of the link to them.
 * @param {HTMLAnchorElement} link */
export async function more(link) {
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  try {
    const url = new URL(link.href);
    url.searchParams.set("part", "rows");
    const rest = await askFragment(url.href);
    for (const row of rest.querySelectorAll(".row")) if (document.getElementById(row.id)) row.remove();
    if (!link.isConnected) return;
    link.closest("p")?.replaceWith(rest);
    watchEnd();
  } catch (error) {
    link.ariaBusy = "false";
    report(error);
  }
}

const end = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting || !(entry.target instanceof HTMLAnchorElement)) continue;
    end.unobserve(entry.target);
    more(entry.target);
  }
}, { rootMargin: "1200px" });

/** Loads more rows when the end of those that there are comes near. What is in a closed group is nowhere near, and near
 * when the group is opened. */
export function watchEnd() {
  end.disconnect();
  for (const link of results.querySelectorAll("[data-next]")) end.observe(link);
}
