# Sourced: step and summary, used by .ci/run and scripts/ci/all.

steps_table=()
steps_failed=0

# step NAME BUDGET LIMIT COMMAND...
step() {
  local name=$1 budget=$2 limit=$3 status=0 began=$SECONDS result took
  shift 3
  printf '\n=== %s: %s\n' "$name" "$*"
  timeout -k 20 "$limit" "$@" </dev/null || status=$?
  took=$((SECONDS - began))
  result=ok
  if [ "$took" -gt "$budget" ]; then
    result="ok, over its budget of ${budget} s"
  fi
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    result="FAILED: stopped after ${limit} s"
  elif [ "$status" -ne 0 ]; then
    result="FAILED: status $status"
  fi
  if [ "$status" -ne 0 ]; then
    steps_failed=$((steps_failed + 1))
  fi
  printf -- '--- %s: %s (%d s)\n' "$name" "$result" "$took"
  steps_table+=("$(printf '%-16s %5d s  %s' "$name" "$took" "$result")")
}

# summary prints the table and returns 1 if a step failed.
summary() {
  printf '\n%-16s %7s  %s\n' step time result
  printf '%s\n' "${steps_table[@]}"
  if [ "$steps_failed" -gt 0 ]; then
    printf '%d of %d steps FAILED\n' "$steps_failed" "${#steps_table[@]}"
    return 1
  fi
  printf 'all %d steps ok in %d s\n' "${#steps_table[@]}" "$SECONDS"
}
