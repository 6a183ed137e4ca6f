// Buttons that copy a text of the page. Where the browser lets no page copy, they stay hidden.
import { message } from "../ui/ui.js";

if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) button.removeAttribute("hidden");
}

// What follows by itself replaces the buttons too.
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
