// Buttons that copy a text of the page, hidden if the browser lets no page copy; and the form of a new policy, which is
// sent only once.
import { message } from "../ui/ui.js";

function showButtons() {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) button.removeAttribute("hidden");
}

if (navigator.clipboard) {
  showButtons();
  // A page that updates itself replaces its buttons.
  const main = document.querySelector("main");
  if (main) new MutationObserver(showButtons).observe(main, { childList: true, subtree: true });
}

/** How long to wait for the answer to the form. */
const answerTime = 30_000;

let sent = false;

const form = document.querySelector("form.draft");

// The answer to the list of findings has the address of the list's filters, which would fill the form differently.
if (form instanceof HTMLFormElement && form.dataset.address) history.replaceState(null, "", form.dataset.address);

// A policy without a name would be created twice.
form?.addEventListener("submit", (event) => {
  if (sent) {
    event.preventDefault();
    message("It is being sent. Wait for the answer.");
    return;
  }
  sent = true;
  setTimeout(() => {
    sent = false;
  }, answerTime);
});

document.addEventListener("click", async (event) => {
  if (!(event.target instanceof HTMLButtonElement) || event.target.dataset.copy === undefined) return;
  const text = document.getElementById(event.target.dataset.copy)?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    message("Copied.");
  } catch {
    message("The browser does not let this page copy. Select the text.", { wrong: true });
  }
});
