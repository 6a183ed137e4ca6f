// Marks rows that change while the list is open. No row moves: a changed row gets a button that reloads it, and a line
// above the list counts new findings.
import { answered, live, throttled } from "../ui/live.js";
import { askFragment, button, Refusal, report, say, scarceFor } from "../ui/ui.js";
import { markShown, shownId } from "./panel.js";
import { freshRow, idOf, isOlder, replaceRow, results, rowOf, titleOf } from "./rows.js";
import { showMatches } from "./selection.js";

/** @typedef {import("../ui/live.js").Change} Change */

/** The least time between two requests for counts. While requests are scarce, there is only one. */
const countsPause = 3000;

/** How many changed rows are compared with their new version per minute; none while requests are scarce. Each comparison
 * counts against the key's limit, as decisions do. Other changed rows are marked without one. */
const maxCompared = 60;

/** How many were compared in the last minute. */
let compared = 0;

/** @type {Set<string>} Ids of findings that were created since the list was loaded, except those that it would not show. */
const created = new Set();

/** @type {Set<string>} Those that the last count did not find: a replica may lag. */
let missed = new Set();

/** How often changes may have been missed, in total and until the panel was last compared. */
let gaps = 0;
let checked = 0;

/** @type {Set<Element>} Rows that were shown when changes may have been missed, and have not been compared since. */
const unsure = new Set();

function doubtRows() {
  for (const row of results.querySelectorAll(".row")) unsure.add(row);
  countSoon();
}

/** Must be called before the list is loaded. Returns a function to call when it is shown: findings that were created
 * before are no longer new. */
export function beginListing() {
  const known = [...created];
  const before = gaps;
  return () => {
    known.forEach((id) => created.delete(id));
    unsure.clear();
    if (gaps > before) doubtRows();
  };
}

/** @type {Map<string, Change>} Changes that are not shown yet, by the finding's id. */
const waiting = new Map();

/** @type {Set<Map<string, Change>>} For each request for rows, the changes since. */
const loads = new Set();

/** Must be called before rows are loaded. Returns a function to call when they are shown, or did not come: rows that have
 * changed in between are marked. */
export function beginRows() {
  /** @type {Map<string, Change>} */
  const since = new Map();
  loads.add(since);
  return () => {
    loads.delete(since);
    for (const [id, change] of since) if (!waiting.has(id)) waiting.set(id, change);
    if (since.size > 0) markSoon();
  };
}

const panelChanged = "The finding in the panel changed.";

/** @param {number} n @param {string} one @param {string} many */
const counted = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/** Replaces the row's age by a mark, so that the row keeps its height.
 * @param {HTMLElement} row @param {boolean} removed */
function mark(row, removed) {
  row.querySelector(".news-of")?.remove();
  row.classList.add("changed");
  const title = titleOf(row)?.textContent ?? "";
  const show = button(removed ? "removed" : "changed", () => (removed ? takeAway(row) : reload(row)), { className: "news-of" });
  show.setAttribute("aria-label", `${title}: ${removed ? "removed. Hide it" : "changed. Show it as it is now"}`);
  row.querySelector(".age")?.append(show);
}

/** Takes away the row of a finding that is gone, also from the selection.
 * @param {HTMLElement} row */
function takeAway(row) {
  /** @type {HTMLElement | null} */ (row.querySelector('input[name="id"]:checked'))?.click();
  row.remove();
}

/** @param {HTMLElement} row */
async function reload(row) {
  try {
    replaceRow(row, await freshRow(idOf(row)));
    const now = rowOf(idOf(row));
    if (now) titleOf(now)?.focus({ preventScroll: true });
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) takeAway(row);
    else report(error);
  }
}

/** Marks the rows of changed findings, unless they show the change already, as after one's own decisions. */
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
    if (!removed && row.dataset.updated === change.updated_at && row.dataset.stands === statusOf(change)) continue;
    if (!removed && row.dataset.stands === statusOf(change) && mayCompare() && (await isUpToDate(row, change))) continue;
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
const statusOf = (change) => `${change.status} ${change.user_status}`;

/** The text of a row without the age, which changes by itself.
 * @param {ParentNode} row */
const words = (row) => [...row.querySelectorAll(".severity, .what, .source, .state")].map((part) => part.textContent).join();

const mayCompare = () => compared < maxCompared && scarceFor() === 0;

/** Reports whether a row is up to date. The answer of a replica that has not observed the change proves nothing.
 * @param {HTMLElement} row @param {Change} change */
async function isUpToDate(row, change) {
  compared++;
  setTimeout(() => compared--, 60_000);
  try {
    const now = await freshRow(idOf(row));
    if ((now.dataset.updated ?? "") < (change.updated_at ?? "")) return false;
    if (now.dataset.seen !== row.dataset.seen || words(now) !== words(row)) return false;
    row.dataset.updated = now.dataset.updated;
    return true;
  } catch {
    return false;
  }
}

/** The address of the list, without the finding beside it. */
const addressOfList = () => location.href.split("#")[0];

/** Loads the list again, and shows its counts and the number of new findings. */
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
    // The next change loads it again.
    answered(error);
  }
}

/** @param {DocumentFragment} now The list as it is now. */
function showCounts(now) {
  const total = results.querySelector(".total");
  const fresh = now.querySelector(".total");
  if (total && fresh && total.textContent !== fresh.textContent) total.replaceChildren(...fresh.childNodes);
  showMatches(now);
  for (const facet of results.querySelectorAll(".facet")) showFacet(facet, now);
}

/** Shows the counts of a facet. The values keep their places: one that no finding has any more gets the count 0, or
 * none if the facet has more values than it shows. A facet that is no choice any more is hidden.
 * @param {Element} facet @param {DocumentFragment} now The list as it is now. */
function showFacet(facet, now) {
  const fresh = now.querySelector(`.facet[aria-labelledby="${facet.getAttribute("aria-labelledby")}"]`);
  facet.toggleAttribute("hidden", !fresh);
  const others = fresh?.querySelector("[data-has-more]") ? "" : "0";
  for (const link of facet.querySelectorAll("a")) {
    const same = fresh?.querySelector(`a[href="${CSS.escape(link.getAttribute("href") ?? "")}"]`);
    const shown = link.querySelector(".count");
    const counted = same?.querySelector(".count")?.textContent ?? others;
    if (shown && shown.textContent !== counted) shown.textContent = counted;
    if (same && link.matches(".more") && link.textContent !== same.textContent) link.textContent = same.textContent;
  }
}

/** Counts the new findings of the list: those on the first page of the list, newest first.
 * @param {string} at @param {DocumentFragment} now The list at that address as it is now.
 * @param {string[]} createdBefore The findings that were created before it was loaded. */
async function countNew(at, now, createdBefore) {
  const isHere = createdBefore.length === 0 || isNewestFirst(at);
  if (!isHere && scarceFor() > 0) {
    if (mayBeOutdated()) showNews(0, false, true);
    countSoon();
    return;
  }
  const page = isHere ? now : await newest(at);
  if (addressOfList() !== at) return;
  const rows = [...page.querySelectorAll(".row")];
  const ids = new Set(rows.map(idOf));
  const missing = createdBefore.filter((id) => !ids.has(id));
  if (missing.some((id) => !missed.has(id))) countSoon(); // the replica that answered may lag
  for (const id of missing) if (missed.has(id)) created.delete(id);
  missed = new Set(missing);
  const n = rows.filter((row) => created.has(idOf(row)) && !rowOf(idOf(row))).length;
  showNews(n, n > 0 && n === rows.length && page.querySelector("[data-next]") !== null, mayBeOutdated());
}

/** Whether changes of rows that are shown may have been missed. */
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

/** Marks a row whose state has changed. Other changes, such as of the title, arrive as events unless some were missed. A
 * row that is newer than the answer stays: it shows one's own decision, or the answer of an up-to-date replica. If it was
 * unsure, it stays so until the next count.
 * @param {HTMLElement} now @param {Set<Element>} rowsBefore The rows that were shown when it was requested.
 * @param {boolean} current Whether no changes were missed since the request. */
function compare(now, rowsBefore, current) {
  const row = rowOf(idOf(now));
  if (!row || !rowsBefore.has(row) || isOlder(now, row)) return;
  const doubted = unsure.has(row);
  if (current) unsure.delete(row);
  if (row.classList.contains("changed")) return;
  const same = now.dataset.seen === row.dataset.seen && now.dataset.stands === row.dataset.stands;
  if (!same || (doubted && words(now) !== words(row))) mark(row, false);
}

/** @param {number} n @param {boolean} more Whether there may be more than those that were counted.
 * @param {boolean} outdated Whether rows may be outdated. */
function showNews(n, more, outdated) {
  const before = results.querySelector(".news");
  if (n === 0 && !outdated) {
    before?.remove();
    return;
  }
  const line = Object.assign(document.createElement("p"), { className: "news" });
  const found = more ? `${n} or more new findings` : counted(n, "new finding", "new findings");
  const news = n === 0 ? "Some rows may have changed" : outdated ? `${found}, and some rows may have changed` : found;
  const invitation = `${news}, show`;
  if (before?.textContent === invitation) return;
  const url = new URL(location.href);
  for (const name of ["cursor", "all"]) url.searchParams.delete(name);
  const link = Object.assign(document.createElement("a"), { href: url.href, textContent: invitation });
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

const markSoon = throttled(markChanged, () => 1000);
const countSoon = throttled(count, () => Math.max(countsPause, scarceFor()));

/** Whether the stream of changes is connected. */
let isConnected = true;

live(["finding"], {
  change: (change) => {
    if (change.change === "created") created.add(change.id);
    else for (const changes of [waiting, ...loads]) changes.set(change.id, change);
    markSoon();
    countSoon();
  },
  again: () => {
    gaps++;
    doubtRows();
  },
  connected: (is, refused) => {
    // The answer for the list shows whether the session has ended.
    if (isConnected !== is || refused) countSoon();
    isConnected = is;
  },
});
