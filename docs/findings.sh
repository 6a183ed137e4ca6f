#!/bin/sh
# Uploads a SARIF file, waits until it is imported, comments on the pull request and fails if the import or the gate
# failed. It needs curl 7.71 or later, gzip, mktemp and what POSIX has. docs/ci.md describes the variables.
#
# Exit status: 0 imported, and the gate passed or there was none; 1 not imported, or not known; 3 the gate failed.
set -eu

# harmless breaks what GitHub's runner, Azure's agent and TeamCity would execute if it is printed. In JSON that changes
# nothing. In other locales, sed of macOS refuses bytes that are not UTF-8.
harmless() {
  LC_ALL=C sed -e 's/##\([A-Za-z]*\[\)/#\\u0023\1/g' -e 's/^\([[:space:]]*:\):/\1\\u003a/'
}

# echo would write the \n of an answer as the end of a line.
say() { printf 'findings: %s\n' "$1" | harmless >&2; }

fail() {
  say "$1"
  exit 1
}

# With ${NAME:?} dash exits with 2.
[ -n "${FINDINGS_URL:-}" ] || fail "FINDINGS_URL is not set: it is the address of the service"
[ -n "${FINDINGS_API_KEY:-}" ] ||
  fail "FINDINGS_API_KEY is not set: it is an API key's token. Forks get no secret, and merge requests no protected one"
[ -n "${REPOSITORY:-}" ] || fail "REPOSITORY is not set: it is the id of the Repository"
[ -n "${PROJECT:-}" ] || fail "PROJECT is not set: it is the id of the Project"
[ -n "${COMMIT:-}" ] || fail "COMMIT is not set: it is the scanned commit"
# Without either, the results of a pull request would be imported as those of the scan branch.
[ -n "${PULL_REQUEST:-}${REF:-}" ] ||
  fail "neither PULL_REQUEST nor REF is set: give the number of the pull request, or the scanned branch"
FINDINGS_URL=${FINDINGS_URL%/}
RESULTS=${RESULTS:-results.sarif}
PULL_REQUEST=${PULL_REQUEST:-}

work=$(mktemp -d) || fail "mktemp cannot make a temporary folder"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # else dash ends without the trap above
answer=$work/answer
header="Authorization: Bearer $FINDINGS_API_KEY"
service="the service at ${FINDINGS_URL##*@}" # without a password

# patient reports whether WAIT is not over yet. It counts anew for each upload, and again once the upload has a place.
patient() { [ $(($(date +%s) - begun)) -lt "${WAIT:-2400}" ]; }

# encode prints a text as it is written in a query.
encode() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; }

# call sends a request to an address, with more options of curl, and keeps the answer. What the service is asked for may
# be asked for again: RETRIES times after a lost connection or a temporary error, and after 429 until WAIT is over,
# because the places for uploads may be taken for long. curl reads the header and the address, which may contain a
# password, from its standard input: other users of the machine see arguments, and a job that is killed leaves its files
# behind. Messages name the address as $service.
call() {
  address=$1
  shift
  while
    code=$(printf 'header = "%s"\nurl = "%s"\n' "$header" "$address" |
      curl --silent --show-error --retry "${RETRIES:-5}" --retry-all-errors --max-time 600 --config - \
        --output "$answer" --write-out '%{http_code}' "$@") || {
      [ $? -ne 2 ] || fail "curl does not know its options: the script needs curl 7.71 or later (curl --version)"
      fail "no answer from $service"
    }
    [ "$code" = 429 ] && patient
  do
    say "$service answered 429, trying again in a minute: $(cat "$answer")"
    sleep 60 >/dev/null 2>&1 & # no window of the rate limit is longer
    wait $!                    # in the foreground it would delay the trap
  done
  case $code in
  2??) ;;
  401) fail "$service answered 401 (has the token expired?): $(cat "$answer")" ;;
  *) fail "$service answered $code: $(cat "$answer")" ;;
  esac
}

# has reports whether the answer holds a member whose value matches the pattern. Quotes within texts are escaped there.
has() { grep -q "\"$1\":\"$2\"" "$answer"; }

# json prints the last text of that name in the answer, as JSON.
json() { sed -nE 's/.*"'"$1"'":("([^"\\]|\\.)*").*/\1/p' "$answer"; }

case $REPOSITORY in
*/*) fail "REPOSITORY is $REPOSITORY: give the Repository's id, without a slash (kubectl get repositories)" ;;
esac
case ${RETRIES:-} in
*[!0-9]*) fail "RETRIES is $RETRIES: give a number" ;;
esac
case ${WAIT:-} in
*[!0-9]*) fail "WAIT is $WAIT: give a number of seconds" ;;
esac
[ -f "$RESULTS" ] && [ -s "$RESULTS" ] || fail "$RESULTS is no file, or empty: the scanner did not run to its end"

query=commit=$(encode "$COMMIT")
add() { [ -z "$2" ] || query="$query&$1=$(encode "$2")"; }
add category "${FINDINGS_CATEGORY:-}"
add formerly "${FINDINGS_FORMERLY:-}"
add source_root "${SOURCE_ROOT:-}"
if [ -n "$PULL_REQUEST" ]; then
  add pull_request "$PULL_REQUEST"
  add fail_on "${FAIL_ON:-}"
  add pr_title "${PR_TITLE:-}"
  add pr_author "${PR_AUTHOR:-}"
  add pr_status "${PR_STATUS:-}"
  add pr_opened_at "${PR_OPENED_AT:-}"
else
  add ref "${REF:-}"
fi

gzip -c "$RESULTS" >"$work/results.gz" || fail "$RESULTS cannot be compressed"
# upload sends the results and waits for the end of their import.
upload() {
  begun=$(date +%s)
  call "$FINDINGS_URL/v2/repos/$REPOSITORY/projects/$PROJECT/scans?$query" --request POST \
    --header 'Content-Type: application/sarif+json' --header 'Content-Encoding: gzip' --data-binary "@$work/results.gz"
  id=$(json upload_id | tr -d '"')
  begun=$(date +%s)
  while has status running; do
    patient || fail "upload $id is not at its end: ask for it later"
    sleep 5
    call "$FINDINGS_URL/v2/uploads/$id"
  done
}
upload
# Each rollout of the service stops the imports that run.
if has status failed && has message '[^"]*stopped before its end (the service is stopping)[^"]*'; then
  say "the service was stopping during the import (upload $id): uploading once more"
  upload
fi
harmless <"$answer"
echo
if has status failed; then fail "the import failed: see message above"; fi
has status completed || fail "the answer names no scan: it is not the service's"

if [ -n "$PULL_REQUEST" ] && [ -n "${COMMENT_URL:-}" ]; then
  printf '{"body":%s}' "$(json markdown)" >"$work/comment"
  # A comment that is lost does not change the verdict, and one that may have arrived is not sent again.
  (answer=$work/reply RETRIES=0 WAIT=0 header=${COMMENT_HEADER:-} service=COMMENT_URL &&
    call "$COMMENT_URL" --header 'Content-Type: application/json' --data-binary "@$work/comment") ||
    say "the comment could not be written"
fi
if has gate failed; then
  say "the gate failed: $(json gate_reason)"
  exit 3
fi
if [ -n "$PULL_REQUEST" ] && [ -n "${FAIL_ON:-}" ]; then
  has gate passed || fail "the answer has no verdict of the gate"
fi
