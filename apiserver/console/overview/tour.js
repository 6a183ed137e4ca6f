// The first steps, shown until the person has closed them.

/** The name under which the browser remembers that. */
const read = "findings-console-tour";

const tour = document.querySelector("#tour");
if (tour instanceof HTMLElement && localStorage.getItem(read) !== "read") {
  tour.hidden = false;
  tour.querySelector("[data-close]")?.addEventListener("click", () => {
    localStorage.setItem(read, "read");
    tour.hidden = true;
    document.querySelector("main")?.focus();
  });
}
