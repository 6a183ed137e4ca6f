// Marks what changes in the list while one looks. No row moves: one that has changed gets a mark with which it is shown
// anew, and for new findings there is a line above the list.
import { answered, live, seldom } from "../ui/live.js";
import { askFragment, button, Refusal, report, say, scarceFor } from "../ui/ui.js";
import { markShown, shownId } from "./panel.js";
import { freshRow, isOlder, replaceRow, results, rowOf, titleOf } from "./rows.js";

/** @typedef {import("../ui/live.js").Change} Change */

/** How often counts are asked for at most, and while requests are scarce once until there are enough again. */
const countsPause = 3000;

/** How many rows are looked at closer in a minute at most, and none while requests are scarce: each look counts against
 * the key's limit, as decisions do. What else changes is marked. */
const mostLooks = 60;

/** How many were looked at in the last minute. */
let looked = 0;

/** @type {Set<string>} Ids of findings that came since the list was asked for, but for those that it would not show. */
const created = new Set();

/** @type {Set<string>} Those of them that the last count did not find: a replica may be behind. */
let missed = new Set();

/** How often changes may have been missed, and how often before the panel was compared. */
let gaps = 0;
let checked = 0;

/** @type {Set<Element>} Rows that were shown when changes may have been missed, and have not been compared since. */
const unsure = new Set();

function doubtRows() {
  for (const row of results.querySelectorAll(".row")) unsure.add(row);
  countSoon();
}

/** To be called before the list is asked for. Returns what is to be called when it is shown: findings that came before
 * are no longer new. */
export function beginListing() {
  const known = [...created];
  const before = gaps;
  return () => {
    known.forEach((id) => created.delete(id));
    unsure.clear();
    if (gaps > before) doubtRows();
  };
}

/** @type {Map<string, Change>} What has yet to be shown, by the finding's id. */
const waiting = new Map();

const panelChanged = "The finding in the panel changed.";

/** @param {number} n @param {string} one @param {string} many */
const counted = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/** Puts a mark in the place of the age, so that the row stays as high as it is.
 * @param {HTMLElement} row @param {boolean} removed */
function mark(row, removed) {
  row.querySelector(".news-of")?.remove();
  row.classList.add("changed");
  const title = titleOf(row)?.textContent ?? "";
  const show = button(removed ? "removed" : "changed", () => (removed ? row.remove() : anew(row)), { className: "news-of" });
  show.setAttribute("aria-label", `${title}: ${removed ? "removed. Hide it" : "changed. Show it as it is now"}`);
  row.querySelector(".age")?.append(show);
}

/** @param {HTMLElement} row */
async function anew(row) {
  try {
    replaceRow(row, await freshRow(row.id));
    const now = rowOf(row.id);
    if (now) titleOf(now)?.focus({ preventScroll: true });
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) row.remove();
    else report(error);
  }
}

/** Marks the rows of what has changed, unless they show it already: one's own decisions do. */
async function markChanged() {
  const changes = [...waiting.values()];
  waiting.clear();
  let marked = 0;
  let shown = false;
  for (const change of changes) {
    shown = (await markShown(change.id, change.change === "removed").catch(() => false)) || shown;
    const row = rowOf(change.id);
    if (!row || row.classList.contains("changed")) continue;
    const removed = change.change === "removed";
    if (!removed && row.dataset.updated === change.updated_at && row.dataset.stands === standsAt(change)) continue;
    if (!removed && row.dataset.stands === standsAt(change) && mayLook() && (await shows(row, change))) continue;
    if (!row.isConnected) continue;
    mark(row, removed);
    marked++;
  }
  const news = [];
  if (shown) news.push(panelChanged);
  if (marked > 0) news.push(`${counted(marked, "finding", "findings")} of the list changed.`);
  if (news.length > 0) say(news.join(" "));
}

/** @param {Change} change */
const standsAt = (change) => `${change.status} ${change.user_status}`;

/** What a row says, but for the age: that changes by itself.
 * @param {ParentNode} row */
const words = (row) => [...row.querySelectorAll(".severity, .what, .source, .state")].map((part) => part.textContent).join();

const mayLook = () => looked < mostLooks && scarceFor() === 0;

/** Reports whether a row shows what it would show now. The answer of a replica that has yet to hear of the change proves
 * nothing.
 * @param {HTMLElement} row @param {Change} change */
async function shows(row, change) {
  looked++;
  setTimeout(() => looked--, 60_000);
  try {
    const now = await freshRow(row.id);
    if ((now.dataset.updated ?? "") < (change.updated_at ?? "")) return false;
    if (now.dataset.seen !== row.dataset.seen || words(now) !== words(row)) return false;
    row.dataset.updated = now.dataset.updated;
    return true;
  } catch {
    return false;
  }
}

/** The address of the list, whatever finding is beside it. */
const addressOfList = () => location.href.split("#")[0];

/** Asks for the list anew, and shows its counts and how many new findings there are. */
async function count() {
  const at = addressOfList();
  const createdBefore = [...created];
  const rowsBefore = new Set(results.querySelectorAll(".row"));
  const before = gaps;
  try {
    const now = await askFragment(at);
    answered();
    if (addressOfList() === at) {
      showCounts(now);
      for (const row of now.querySelectorAll(".row")) {
        compare(/** @type {HTMLElement} */ (row), rowsBefore, gaps === before);
      }
      await countNew(at, now, createdBefore);
    }
    if (before > checked) {
      await checkPanel();
      checked = before;
    }
  } catch (error) {
    // It is asked for again with the next change, as long as changes are heard of.
    answered(error);
  }
}

/** @param {DocumentFragment} now The list as it is now. */
function showCounts(now) {
  const total = results.querySelector(".total");
  const fresh = now.querySelector(".total");
  if (total && fresh && total.textContent !== fresh.textContent) total.replaceChildren(...fresh.childNodes);
  for (const link of now.querySelectorAll(".facet a")) {
    const shown = results.querySelector(`.facet a[href="${CSS.escape(link.getAttribute("href") ?? "")}"] .count`);
    const counted = link.querySelector(".count")?.textContent ?? "";
    if (shown && shown.textContent !== counted) shown.textContent = counted;
  }
}

/** Counts the new findings of the list: those on the first page of the newest.
 * @param {string} at @param {DocumentFragment} now The list at that address as it is now.
 * @param {string[]} createdBefore What had come before the list was asked for now. */
async function countNew(at, now, createdBefore) {
  const isHere = createdBefore.length === 0 || isNewestFirst(at);
  if (!isHere && scarceFor() > 0) {
    if (mayBeOutdated()) tellNew(0, false, true);
    countSoon();
    return;
  }
  const page = isHere ? now : await newest(at);
  if (addressOfList() !== at) return;
  const rows = [...page.querySelectorAll(".row")];
  const ids = new Set(rows.map((row) => row.id));
  const missing = createdBefore.filter((id) => !ids.has(id));
  if (missing.some((id) => !missed.has(id))) countSoon(); // the replica that was asked may be behind
  for (const id of missing) if (missed.has(id)) created.delete(id);
  missed = new Set(missing);
  const n = rows.filter((row) => created.has(row.id) && !rowOf(row.id)).length;
  tellNew(n, n > 0 && n === rows.length && page.querySelector("[data-next]") !== null, mayBeOutdated());
}

/** Whether changes may have been missed of rows that are shown. */
const mayBeOutdated = () => [...unsure].some((row) => row.isConnected && !row.classList.contains("changed"));

/** @param {string} at The address of a list. */
function isNewestFirst(at) {
  const query = new URL(at).searchParams;
  const sorted = (query.get("sort") || "created_at") === "created_at" && query.get("order") !== "asc";
  return sorted && !query.has("cursor") && !query.get("group");
}

/** @param {string} at The address of a list. @returns {Promise<ParentNode>} The newest rows of it. */
async function newest(at) {
  const url = new URL(at);
  url.searchParams.delete("cursor");
  for (const [name, value] of [["sort", "created_at"], ["order", "desc"], ["part", "rows"]]) url.searchParams.set(name, value);
  return askFragment(url.href);
}

/** Marks a row of the list that is shown otherwise than it would be now. What else of it changed, such as its title, is
 * heard of, unless changes were missed. A row that is newer than the answer stays: it shows one's own decision, or what an
 * up-to-date replica has answered. If it was in doubt, it is until the next count.
 * @param {HTMLElement} now @param {Set<Element>} rowsBefore The rows that were shown when it was asked for.
 * @param {boolean} current Whether no changes were missed since it was asked for. */
function compare(now, rowsBefore, current) {
  const row = rowOf(now.id);
  if (!row || !rowsBefore.has(row) || isOlder(now, row)) return;
  const doubted = unsure.has(row);
  if (current) unsure.delete(row);
  if (row.classList.contains("changed")) return;
  const same = now.dataset.seen === row.dataset.seen && now.dataset.stands === row.dataset.stands;
  if (!same || (doubted && words(now) !== words(row))) mark(row, false);
}

/** @param {number} n @param {boolean} more Whether there may be more than those that were counted.
 * @param {boolean} outdated Whether rows may be outdated. */
function tellNew(n, more, outdated) {
  const before = results.querySelector(".news");
  if (n === 0 && !outdated) {
    before?.remove();
    return;
  }
  const line = Object.assign(document.createElement("p"), { className: "news" });
  const found = more ? `${n} or more new findings` : counted(n, "new finding", "new findings");
  const news = n === 0 ? "Some rows may have changed" : outdated ? `${found}, and some rows may have changed` : found;
  const offer = `${news}, show`;
  if (before?.textContent === offer) return;
  const url = new URL(location.href);
  for (const name of ["cursor", "all"]) url.searchParams.delete(name);
  const link = Object.assign(document.createElement("a"), { href: url.href, textContent: offer });
  link.setAttribute("data-results", "");
  line.append(link);
  if (before) before.replaceWith(line);
  else results.querySelector(".tools")?.after(line);
  say(`${news}.`);
}

/** Marks the finding in the panel if changes of it were missed. */
async function checkPanel() {
  const id = shownId();
  const removed = (/** @type {unknown} */ error) => {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    return markShown(id, true);
  };
  if (await markShown(id, false).catch(removed)) say(panelChanged);
}

const markSoon = seldom(markChanged, () => 1000);
const countSoon = seldom(count, () => Math.max(countsPause, scarceFor()));

/** Whether changes are heard of. */
let heard = true;

live(["finding"], {
  change: (change) => {
    if (change.change === "created") created.add(change.id);
    else waiting.set(change.id, change);
    markSoon();
    countSoon();
  },
  again: () => {
    gaps++;
    doubtRows();
  },
  connected: (is, refused) => {
    // The answer for the list says whether the session has ended, or goes on.
    if (heard !== is || refused) countSoon();
    heard = is;
  },
});
