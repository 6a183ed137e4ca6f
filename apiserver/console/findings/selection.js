// The selection: the findings that are chosen for one decision about all of them.
import { edits, fill } from "../ui/forms.js";
import { find, message } from "../ui/ui.js";
import { currentRow, idOf, results, rowOf, walk } from "./rows.js";

results.addEventListener("change", (event) => {
  if (event.target instanceof HTMLInputElement && ["id", "all"].includes(event.target.name)) showSelection();
});

function showSelection() {
  const bar = find(".selection", HTMLFieldSetElement);
  const said = find("#selected", HTMLParagraphElement);
  if (!bar || !said) return;
  const count = results.querySelectorAll('.row input[name="id"]:checked').length;
  const every = find('input[name="all"]', HTMLInputElement);
  const all = Boolean(every?.checked);
  const tooMany = !all && count > Number(bar.dataset.most);
  said.textContent = all
    ? `${every?.dataset.total} chosen; nothing is decided until you apply.`
    : `${count} selected. Press x to select more.`;
  bar.classList.toggle("used", count > 0 || all);
  find("#too-many", HTMLParagraphElement)?.toggleAttribute("hidden", !tooMany);
  bar.querySelector("button")?.toggleAttribute("disabled", tooMany);
}

/** Shows how many findings match the filters.
 * @param {DocumentFragment} now The list as it is now. */
export function showMatches(now) {
  const every = find('input[name="all"]', HTMLInputElement);
  const fresh = now.querySelector('input[name="all"]');
  const words = fresh?.nextSibling;
  if (!every || !(fresh instanceof HTMLInputElement) || !words || every.dataset.total === fresh.dataset.total) return;
  every.dataset.total = fresh.dataset.total;
  every.nextSibling?.replaceWith(words);
  if (every.checked) showSelection();
}

/** Changes the results and keeps the selection of findings that are still listed, and the values typed about it. A
 * message says what is no longer selected.
 * @param {() => void} change */
export function keepSelection(change) {
  const chosen = [...results.querySelectorAll('.row:has(input[name="id"]:checked)')].map(idOf);
  const all = results.querySelector('input[name="all"]:checked') !== null;
  const form = find("#selection", HTMLFormElement);
  const typed = form && edits(form);
  change();
  if (chosen.length === 0 && !all) return;
  let kept = 0;
  for (const id of chosen) {
    const box = rowOf(id)?.querySelector('input[name="id"]');
    if (!(box instanceof HTMLInputElement)) continue;
    box.checked = true;
    kept++;
  }
  const fresh = find("#selection", HTMLFormElement);
  if (fresh && typed && (kept > 0 || results.querySelector('input[name="all"]:checked'))) fill(fresh, typed);
  if (kept > 0) showSelection();
  const lost = chosen.length - kept;
  if (all && !results.querySelector('input[name="all"]:checked')) message("What matched before is no longer selected.");
  else if (lost > 0) message(`${lost} selected ${lost === 1 ? "finding is" : "findings are"} not shown any more and no longer selected.`);
}

/** Selects the current row, or removes it from the selection. Without a current row it is the first one. */
export function toggleSelected() {
  if (!currentRow()) walk(1);
  /** @type {HTMLInputElement | null | undefined} */ (currentRow()?.querySelector('input[name="id"]'))?.click();
}
