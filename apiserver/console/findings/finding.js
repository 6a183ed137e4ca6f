// What the list and a finding's own page share: the fields of a decision.

/** The fields of a form as they are sent.
 * @param {HTMLFormElement} form
 * @returns {URLSearchParams} */
export function submitted(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) fields.set(name, String(value));
  return fields;
}

/** The fields that lead to a change. Seen is the decision that it rests on.
 * @param {{user_status: string, reason: string, expires_at: string, comments: string}} change
 * @param {string} seen
 * @returns {URLSearchParams} */
export function changeForm(change, seen) {
  return new URLSearchParams({
    user_status: change.user_status, reason: change.reason, until: change.expires_at, comments: change.comments, seen,
  });
}
