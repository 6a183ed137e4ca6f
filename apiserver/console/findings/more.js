// More rows as the person scrolls.
import { askFragment, report } from "../ui/ui.js";
import { beginRows } from "./live.js";
import { results } from "./rows.js";

/** Replaces the link to the next rows by these rows.
 * @param {HTMLAnchorElement} link */
export async function more(link) {
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  const markChangedSince = beginRows();
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
  } finally {
    markChangedSince();
  }
}

const end = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting || !(entry.target instanceof HTMLAnchorElement)) continue;
    end.unobserve(entry.target);
    more(entry.target);
  }
}, { rootMargin: "1200px" });

/** Loads more rows when the person scrolls near the end. Links in a closed group do not count until it is opened. */
export function watchEnd() {
  end.disconnect();
  for (const link of results.querySelectorAll("[data-next]")) end.observe(link);
}
