// The list of findings: filters and search without loading anew, rows as one scrolls, a finding beside the list, and
// decisions by keyboard.
import { ask, fragment, message } from "../ui/ui.js";
import { changeForm, submitted } from "./finding.js";

/** @template {Element} T @param {string} selector @param {new () => T} type @returns {T | null} */
function find(selector, type) {
  const found = document.querySelector(selector);
  return found instanceof type ? found : null;
}

const results = /** @type {HTMLElement} */ (document.querySelector("#results"));
const panel = /** @type {HTMLElement} */ (document.querySelector("#panel"));
document.body.classList.add("scripted");

// --- Filters, order and search -------------------------------------------------------------------------------------

/** @type {AbortController | undefined} */
let asking;

/** Shows the results of another address.
 * @param {string} url @param {boolean} push Whether the browser's back leads to what is shown now. */
async function go(url, push) {
  asking?.abort();
  asking = new AbortController();
  try {
    const response = await ask(url, { signal: asking.signal });
    results.replaceChildren(fragment(await response.text()));
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    at = null;
    watchEnd();
  } catch (error) {
    report(error);
  }
}

/** @param {unknown} error */
function report(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  message(error instanceof Error ? error.message : String(error), { wrong: true });
}

window.addEventListener("popstate", () => go(location.href, false));

results.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  if (link.hasAttribute("data-results")) {
    event.preventDefault();
    go(link.href, true);
  } else if (link.hasAttribute("data-next")) {
    event.preventDefault();
    more(link);
  } else if (link.hasAttribute("data-panel")) {
    event.preventDefault();
    stand(link.closest("li"));
    open(link.href);
  }
});

/** How long one must not have typed before the list follows. */
const typingTime = 200;
let typing = 0;

results.addEventListener("input", (event) => {
  if (!(event.target instanceof HTMLInputElement) || event.target.name !== "text") return;
  const input = event.target;
  clearTimeout(typing);
  typing = window.setTimeout(async () => {
    const form = /** @type {HTMLFormElement} */ (input.form);
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.set(name, String(value));
    const caret = input.selectionStart ?? input.value.length;
    await go(`${form.action}?${query}`, false);
    const again = find("#text", HTMLInputElement);
    again?.focus();
    again?.setSelectionRange(caret, caret);
  }, typingTime);
});

// --- Rows ----------------------------------------------------------------------------------------------------------

/** Puts the next rows in the place of the link to them.
 * @param {HTMLAnchorElement} link */
async function more(link) {
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  try {
    const response = await ask(link.href);
    const rest = fragment(await response.text());
    for (const row of rest.querySelectorAll(".row")) if (document.getElementById(row.id)) row.remove();
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

function watchEnd() {
  end.disconnect();
  const link = find("[data-next]", HTMLAnchorElement);
  if (link) end.observe(link);
}

/** @type {HTMLElement | null} The row that keys are about. */
let at = null;

/** @param {Element | null} row */
function stand(row) {
  at?.classList.remove("at");
  at = row instanceof HTMLElement ? row : null;
  at?.classList.add("at");
  at?.scrollIntoView({ block: "nearest" });
}

/** @param {1 | -1} step */
function walk(step) {
  const rows = [...results.querySelectorAll(".row")];
  const index = at ? rows.indexOf(at) : step === 1 ? -1 : rows.length;
  const next = rows[index + step];
  if (!next) return;
  stand(next);
  /** @type {HTMLElement | null} */ (next.querySelector("[data-panel]"))?.focus({ preventScroll: true });
  if (!panel.hidden) openRow();
}

// --- The finding beside the list -----------------------------------------------------------------------------------

/** @param {string} url */
async function open(url) {
  try {
    const response = await ask(url);
    const close = Object.assign(document.createElement("button"), { type: "button", className: "close", textContent: "Close" });
    close.addEventListener("click", shut);
    panel.replaceChildren(close, fragment(await response.text()));
    panel.hidden = false;
    panel.scrollTop = 0;
  } catch (error) {
    report(error);
  }
}

function openRow() {
  const link = at?.querySelector("[data-panel]");
  if (link instanceof HTMLAnchorElement) open(link.href);
}

function shut() {
  panel.hidden = true;
  panel.replaceChildren();
  /** @type {HTMLElement | null | undefined} */ (at?.querySelector("[data-panel]"))?.focus();
}

panel.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.hasAttribute("data-decide")) return;
  event.preventDefault();
  const id = form.closest("article")?.dataset.id ?? "";
  decide(id, submitted(form)).then((done) => {
    if (done) open(form.action);
  });
});

// --- Decisions -----------------------------------------------------------------------------------------------------

/** @typedef {{user_status: string, reason: string, expires_at: string, comments: string}} Change */
/** @type {{id: string, change: Change, seen: string}[]} What the last decisions are undone by. */
const undos = [];

/** @type {Promise<unknown>} Decisions are sent one after the other, so that each rests on what the one before has made. */
let sending = Promise.resolve();

/** Decides about a finding, and shows its row as it then is. The row changes at once, and back where that fails.
 * @param {string} id @param {URLSearchParams} form @param {boolean} [undoing] @returns {Promise<boolean>} */
function decide(id, form, undoing = false) {
  const badge = document.getElementById(id)?.querySelector(".state .badge");
  const before = badge?.textContent ?? "";
  if (badge) badge.textContent = { muted: "muted", active: "confirmed", open: "open" }[form.get("user_status") ?? ""] ?? before;
  const sent = sending.then(() => send(id, form, undoing)).catch((error) => {
    if (badge) badge.textContent = before;
    report(error);
    return false;
  });
  sending = sent;
  return sent;
}

/** @param {string} id @param {URLSearchParams} form @param {boolean} undoing */
async function send(id, form, undoing) {
  const row = document.getElementById(id);
  if (row?.dataset.seen && !form.has("seen")) form.set("seen", row.dataset.seen);
  const answer = await (await ask(`/console/findings/${encodeURIComponent(id)}`, { form })).json();
  if (row) replaceRow(row, answer.row);
  if (undoing) {
    message("Undone.");
    return true;
  }
  undos.push({ id, change: answer.undo, seen: answer.seen });
  message("Decided.", { action: "Undo (u)", run: undo });
  return true;
}

/** @param {HTMLElement} row @param {string} html */
function replaceRow(row, html) {
  const fresh = /** @type {HTMLElement} */ (fragment(html).firstElementChild);
  const wasAt = row === at;
  row.replaceWith(fresh);
  if (!wasAt) return;
  stand(fresh);
  /** @type {HTMLElement | null} */ (fresh.querySelector("[data-panel]"))?.focus({ preventScroll: true });
}

function undo() {
  const last = undos.pop();
  if (!last) {
    message("There is nothing to undo.");
    return;
  }
  decide(last.id, changeForm(last.change, last.seen), true);
}

/** Decides about the row that one stands on, or about what is selected.
 * @param {string} status */
function decideBy(status) {
  const bar = find(".selection", HTMLFieldSetElement);
  if (!bar) {
    message("Your key may not decide: it lacks the scope findings:triage.", { wrong: true });
    return;
  }
  if (selectedCount() > 0) {
    /** @type {HTMLSelectElement} */ (bar.querySelector('[name="user_status"]')).value = status;
    /** @type {HTMLSelectElement} */ (bar.querySelector('[name="reason"]')).focus();
    return;
  }
  if (!at) walk(1);
  if (!at) return;
  const { id } = at;
  if (status !== "muted") {
    decide(id, new URLSearchParams({ user_status: status }));
    return;
  }
  const dialog = find("#decision", HTMLDialogElement);
  const form = dialog?.querySelector("form");
  if (!dialog || !form) return;
  /** @type {HTMLSelectElement} */ (form.elements.namedItem("user_status")).value = status;
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "decide") return;
    const fields = submitted(form);
    // A comment that was there stays, unless another is written.
    if (!fields.get("comments")) fields.delete("comments");
    decide(id, fields);
  }, { once: true });
  dialog.showModal();
  /** @type {HTMLSelectElement} */ (form.elements.namedItem("reason")).focus();
}

// --- Selection -----------------------------------------------------------------------------------------------------

const selectedCount = () => results.querySelectorAll('.row input[name="id"]:checked, input[name="all"]:checked').length;

results.addEventListener("change", (event) => {
  if (!(event.target instanceof HTMLInputElement) || !["id", "all"].includes(event.target.name)) return;
  const count = results.querySelectorAll('.row input[name="id"]:checked').length;
  const all = find('input[name="all"]', HTMLInputElement)?.checked;
  const said = find("#selected", HTMLParagraphElement);
  if (said) said.textContent = all ? "All that match are decided about." : `${count} selected. Press x to select more.`;
  find(".selection", HTMLFieldSetElement)?.classList.toggle("used", count > 0 || Boolean(all));
});

function toggleSelected() {
  if (!at) walk(1);
  /** @type {HTMLInputElement | null | undefined} */ (at?.querySelector('input[name="id"]'))?.click();
}

// --- Keys ----------------------------------------------------------------------------------------------------------

/** @type {Record<string, () => void>} */
const actions = {
  j: () => walk(1),
  k: () => walk(-1),
  x: toggleSelected,
  m: () => decideBy("muted"),
  c: () => decideBy("active"),
  o: () => decideBy("open"),
  u: undo,
  "/": () => find("#text", HTMLInputElement)?.focus(),
  "?": () => find("#help", HTMLDialogElement)?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && !panel.hidden) {
    shut();
    return;
  }
  const typed = event.target instanceof HTMLElement && event.target.matches('input:not([type="checkbox"]), select, textarea');
  if (typed) {
    if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  const act = actions[event.key];
  if (!act) return;
  event.preventDefault();
  // Later, so that the key is not typed into what it opens.
  requestAnimationFrame(act);
});

watchEnd();
