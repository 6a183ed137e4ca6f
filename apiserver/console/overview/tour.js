// The first steps, until somebody has read them.

/** Where the browser keeps that they were read. */
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
