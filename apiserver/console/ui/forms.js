// Forms: what a person has changed in one, and that a required reason is not missing.

/** The fields of a form as the browser would send them.
 * @param {HTMLFormElement} form */
export function submitted(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) fields.set(name, String(value));
  return fields;
}

/** The fields of a form that were changed since the page was made, or since `fillAsUnchanged`. With another status, the
 * reason and the end are as in the form, also if they are empty. Whoever enters a reason or an end where nothing was
 * decided has chosen the status that the form shows.
 * @param {HTMLFormElement} form */
export function edits(form) {
  const fields = new URLSearchParams();
  for (const field of form.elements) {
    if (field instanceof HTMLSelectElement) {
      const unchanged = Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
      if (field.selectedIndex !== unchanged) fields.set(field.name, field.value);
    } else if (field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement) {
      if (field.value !== field.defaultValue) fields.set(field.name, field.value);
    }
  }
  const entered = fields.has("reason") || fields.has("until");
  if (fields.has("user_status") || (entered && isUndecided(form))) addChoice(fields, form);
  return fields;
}

/** Adds the status that the person chose in a form, with its reason and its end.
 * @param {URLSearchParams} fields @param {HTMLFormElement} form */
function addChoice(fields, form) {
  const values = submitted(form);
  for (const name of ["user_status", "reason", "until"]) fields.set(name, values.get(name) ?? "");
}

/** Fills a form with values that were typed before. Hidden fields are not changed.
 * @param {HTMLFormElement} form @param {URLSearchParams} typed */
export function fill(form, typed) {
  for (const [name, value] of typed) {
    const field = form.elements.namedItem(name);
    if (field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement) field.value = value;
    if (field instanceof HTMLInputElement && field.type !== "hidden") field.value = value;
  }
}

/** Fills a form with values that do not count as changed.
 * @param {HTMLFormElement} form @param {URLSearchParams} values */
export function fillAsUnchanged(form, values) {
  fill(form, values);
  for (const field of form.elements) {
    if (field instanceof HTMLSelectElement) for (const option of field.options) option.defaultSelected = option.selected;
    if (field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement) field.defaultValue = field.value;
  }
}

/** What a person has put into the form of a decision, to fill another form with: the fields that were changed. Somebody
 * else may have changed the others.
 * @param {HTMLFormElement} form */
export function typedIn(form) {
  const typed = edits(form);
  // Where nothing was decided, the choice that the browser has made is the person's as soon as the form is sent.
  if (isUndecided(form)) addChoice(typed, form);
  return typed;
}

/** Whether the form of a decision was filled with none: no status is chosen in it.
 * @param {HTMLFormElement} form */
export function isUndecided(form) {
  const choice = form.elements.namedItem("user_status");
  return choice instanceof HTMLSelectElement && ![...choice.options].some((option) => option.defaultSelected);
}

// If the organization requires a reason to mute, a form without one is not sent, and a text beside the field says why.
document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!(form instanceof HTMLFormElement) || (submitter instanceof HTMLButtonElement && submitter.formNoValidate)) return;
  const reason = form.querySelector("select[data-needed]");
  const status = form.elements.namedItem("user_status");
  if (!(reason instanceof HTMLSelectElement) || !(status instanceof HTMLSelectElement)) return;
  const missing = status.value === "muted" && !reason.value;
  reason.ariaInvalid = String(missing);
  const said = reason.parentElement?.querySelector(".missing");
  if (said) said.textContent = missing ? "Choose a reason: your organization requires one to mute." : "";
  if (!missing) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  reason.focus();
}, { capture: true });
