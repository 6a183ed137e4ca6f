# The node's processes, by pid and start time, for the scripts beside this file: after a restart of the machine another
# process may have the pid.
# shellcheck shell=bash

# started PID prints when the process was started, in ticks since the machine's start.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# record FILE PID writes FILE.pid and FILE.started.
record() {
  started "$2" >"$1.started" || true
  echo "$2" >"$1.pid"
}

# runs FILE succeeds if the recorded process still runs.
runs() { [ -s "$1.started" ] && [ "$(started "$(cat "$1.pid")")" = "$(cat "$1.started")" ]; }

# node_runs FOLDER succeeds if the folder's node runs or is being started.
node_runs() { runs "$1/state/init" || runs "$1/state/unshare"; }
