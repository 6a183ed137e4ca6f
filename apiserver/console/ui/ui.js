// What every page needs: requests to the console, times in the reader's zone, messages, and menus that close.

const token = document.querySelector('meta[name="console-token"]')?.getAttribute("content") ?? "";

/** Turns text into HTML, here and nowhere else. Only text from the console's own templates may be passed.
 * @type {{ createHTML: (html: string) => any }} */
const own = { createHTML: (html) => html };
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("console", own) ?? own;

/** Returns the elements of HTML that the console has sent.
 * @param {string} html
 * @returns {DocumentFragment} */
export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  localise(template.content);
  return template.content;
}

/** An error response of the console, in words for people. */
export class Refusal extends Error {
  /** @param {number} status @param {{title?: string, detail?: string, next?: string, row?: string}} said */
  constructor(status, said) {
    super([said.title, said.detail, said.next].filter(Boolean).join(" · ") || `The service answered with ${status}.`);
    this.status = status;
    this.said = said;
  }
}

const unreachable = "The service cannot be reached. What is shown is as it was; try again.";

/** How long to wait for a complete answer. */
const answerTime = 30_000;

/** When the key's limit begins anew, by a clock that nobody sets; 0 if a third of it was left at the last answer. */
let scarceUntil = 0;

/** For how many milliseconds the remaining requests are kept for what the person does; 0 if there are enough. */
export const scarceFor = () => Math.max(0, scarceUntil - performance.now());

/** @param {Headers} headers */
function noteRemaining(headers) {
  const remaining = headers.get("X-Ratelimit-Remaining");
  if (remaining === null) return;
  const scarce = Number(remaining) < Number(headers.get("X-Ratelimit-Limit")) / 3;
  scarceUntil = scarce ? performance.now() + 1000 * Number(headers.get("X-Ratelimit-Reset")) : 0;
}

/** Asks the console for a part of a page, or for JSON.
 * @param {string} url
 * @param {{form?: URLSearchParams, signal?: AbortSignal}} [options] */
export async function ask(url, options = {}) {
  const headers = new Headers({ "X-Console-Fragment": "1", "X-Console-Token": token });
  const late = AbortSignal.timeout(answerTime);
  const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
  const response = await fetch(url, {
    method: options.form ? "POST" : "GET", body: options.form, headers, signal, credentials: "same-origin",
  }).catch((error) => {
    // The browser's message about a lost connection is not for people.
    throw error instanceof TypeError ? new Error(unreachable, { cause: error }) : error;
  });
  noteRemaining(response.headers);
  if (response.status === 401) {
    throw new Refusal(response.status, {
      title: "Your session has ended", detail: "Nothing was changed.",
      next: "Log in in another tab, then do it again here. After a login with another key, load this page again first.",
    });
  }
  const age = response.headers.get("X-Data-Age");
  if (response.ok || age) showAge(Number(age));
  if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => ({})));
  return response;
}

/** Warns of data that is a minute old or older.
 * @param {number} seconds How old the data of the last answer may be. */
function showAge(seconds) {
  const warning = document.querySelector("#data-age");
  warning?.toggleAttribute("hidden", seconds < 60);
  warning?.querySelector("span")?.replaceChildren(String(Math.floor(seconds / 60)));
}

/** Asks the console for a part of a page, and returns its elements.
 * @param {string} url */
export const askFragment = async (url) => fragment(await (await ask(url)).text());

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const units = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

/** Shows a text in an element. If the element shows it already, it is not touched: the person may have selected it.
 * @param {Element} element @param {string} text */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows times in the reader's zone: as an age with the moment in the title, or as a moment where the age is not enough.
 * @param {ParentNode} root */
export function localise(root) {
  for (const element of root.querySelectorAll("time")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    if (element.dataset.moment !== undefined) {
      put(element, moment.format(at));
      continue;
    }
    const seconds = (at.getTime() - Date.now()) / 1000;
    const unit = units.find(([, length]) => Math.abs(seconds) >= length);
    element.title = zone.format(at);
    // 89.5 days from now are shown as three months; 1.5 days ago as one day.
    const whole = seconds > 0 ? Math.round : Math.trunc;
    put(element, unit ? relative.format(whole(seconds / unit[1]), unit[0]) : "now");
  }
}

/** Returns the first element of the page that matches the selector, if it has the type.
 * @template {Element} T @param {string} selector @param {new () => T} type @returns {T | null} */
export function find(selector, type) {
  const found = document.querySelector(selector);
  return found instanceof type ? found : null;
}

/** Text for screen readers. The element exists before its text: screen readers only announce changes. */
const said = Object.assign(document.createElement("p"), { className: "hidden" });
said.setAttribute("role", "status");
document.querySelector("main")?.append(said);

/** Announces to screen readers what has changed on the page.
 * @param {string} words */
export function say(words) {
  said.textContent = words;
}

/** Makes a button.
 * @param {string} text @param {() => void} run @param {{className?: string}} [options] */
export function button(text, run, options = {}) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, ...options });
  made.addEventListener("click", run);
  return made;
}

/** How long a message stays if nothing has to be done about it. */
const messageTime = 10_000;

/** Shows a message, with a button if there is something to do about it. An error stays until it is dismissed; any other
 * message is removed by the next one.
 * @param {string} text
 * @param {{wrong?: boolean, action?: string, run?: () => void}} [options] @returns The element that is shown. */
export function message(text, options = {}) {
  const shown = document.createElement("div");
  shown.className = options.wrong ? "message wrong" : "message";
  if (options.wrong) shown.role = "alert";
  shown.append(Object.assign(document.createElement("span"), { textContent: text }));
  /** @param {string} text @param {() => void} [run] */
  const addButton = (text, run) => shown.append(button(text, () => {
    shown.remove();
    run?.();
  }));
  if (options.action) addButton(options.action, options.run);
  if (options.wrong) addButton("Dismiss");
  const list = document.querySelector("#messages");
  for (const earlier of list?.querySelectorAll(".message") ?? []) {
    const repeated = !options.action && earlier.textContent === shown.textContent;
    if (repeated || !earlier.classList.contains("wrong")) earlier.remove();
  }
  list?.append(shown);
  // Errors that stay may fill the screen.
  shown.scrollIntoView({ block: "nearest" });
  if (!options.wrong) setTimeout(() => shown.remove(), messageTime);
  return shown;
}

/** Shows what went wrong, unless the request was aborted, with a button if there is something to do about it.
 * @param {unknown} error @param {{action?: string, run?: () => void}} [options] */
export function report(error, options = {}) {
  if (error instanceof DOMException && error.name === "AbortError") return undefined;
  const late = error instanceof DOMException && error.name === "TimeoutError";
  const words = error instanceof Error ? error.message : String(error);
  return message(late ? "The service did not answer. Try again." : words, { ...options, wrong: true });
}

/** The menu that is open, if any. */
const openMenu = () => /** @type {HTMLDetailsElement | null} */ (document.querySelector("details[open]:has(> .menu)"));

// A menu closes by Esc, and by a click elsewhere.
document.addEventListener("keydown", (event) => {
  const menu = openMenu();
  if (event.key !== "Escape" || !menu) return;
  event.stopImmediatePropagation();
  menu.open = false;
  menu.querySelector("summary")?.focus();
});
document.addEventListener("click", (event) => {
  for (let menu = openMenu(); menu && !(event.target instanceof Node && menu.contains(event.target)); menu = openMenu()) {
    menu.open = false;
  }
});

// A page that the browser has kept for Back may be out of date.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

localise(document);

// Ages grow while the page is open.
setInterval(() => {
  if (!document.hidden) localise(document);
}, 60_000);
