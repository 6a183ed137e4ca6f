// Receives the changes on the server since the page was rendered, while the page is visible.
import { Refusal, report } from "./ui.js";

/** @typedef {{kind: string, change: "created" | "updated" | "removed", id: string, status?: string,
 * user_status?: string, updated_at?: string}} Change */

/** How long to wait before trying again if the stream is refused: too many are open, or the session has ended. */
const longPause = 30_000;

/** Receives the changes of objects of these kinds.
 * @param {string[]} kinds
 * @param {{change: (change: Change) => void, again: () => void, connected?: (is: boolean, refused: boolean) => void}} on
 *   `again` is called when changes may have been missed; `connected` when the stream is connected, refused by the service,
 *   or lost. */
export function live(kinds, on) {
  /** @param {string} name */
  const given = (name) => document.querySelector(`meta[name="console-${name}"]`)?.getAttribute("content") ?? "";
  let last = given("place");
  /** @type {EventSource | undefined} */
  let source;
  let retry = 0;

  /** @param {Event} event */
  const place = (event) => {
    if (event instanceof MessageEvent && event.lastEventId) last = event.lastEventId;
  };

  function connect() {
    clearTimeout(retry);
    source?.close();
    if (document.hidden) return;
    // By now somebody may have logged in to another organization in another tab.
    const query = new URLSearchParams({ kinds: kinds.join(","), organization: given("organization") });
    if (last) query.set("after", last);
    const opened = new EventSource(`/console/events?${query}`);
    source = opened;
    for (const kind of kinds) {
      opened.addEventListener(kind, (event) => {
        place(event);
        on.change({ kind, ...JSON.parse(event.data) });
      });
    }
    opened.addEventListener("reset", (event) => {
      place(event);
      on.again();
    });
    opened.addEventListener("open", () => {
      on.connected?.(true, false);
      // Without a place in the stream, the service does not know what was missed since the page was rendered.
      if (!last) on.again();
    });
    opened.addEventListener("error", () => {
      on.connected?.(false, opened.readyState === EventSource.CLOSED);
      // The browser connects again by itself, unless it was refused.
      if (opened.readyState === EventSource.CLOSED && opened === source) retry = window.setTimeout(connect, longPause);
    });
  }

  // A hidden page uses none of the key's streams.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      clearTimeout(retry);
    } else {
      connect();
    }
  });
  window.addEventListener("pagehide", () => source?.close());
  connect();
}

/** @type {HTMLElement | undefined} The message that says why the page no longer updates. */
let refused;

/** Must be called after each request for changed data. Shows once why the page no longer updates, until it does again.
 * @param {unknown} [error] Why there was no answer. */
export function answered(error) {
  if (!error) {
    refused?.remove();
    refused = undefined;
  }
  // Other errors are temporary.
  if (error instanceof Refusal && [401, 403, 404].includes(error.status)) refused ??= report(error);
}

/** Returns a function that runs the task shortly after it was called, and at most once per pause.
 * @param {() => unknown} task @param {() => number} pause How long, from the end of a run, in milliseconds. */
export function throttled(task, pause) {
  const moment = 300;
  let due = 0; // by a clock that nobody sets
  let timer = 0;
  let asked = false;
  const call = () => {
    asked = true;
    if (timer) return;
    timer = window.setTimeout(async () => {
      asked = false;
      try {
        await task();
      } finally {
        timer = 0;
        due = performance.now() + pause();
        if (asked) call();
      }
    }, Math.max(moment, due - performance.now()));
  };
  return call;
}
