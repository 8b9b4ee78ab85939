#!/bin/sh
# The C driver, in one process and in two, under the address, undefined-behaviour
# and thread sanitizers, and under valgrind. Run by `make sanitize`.
#   sanitize.sh BUILD_DIR STANDIN_DIR
set -eu
build=$1 standin=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

driver() { # name, compiler flags...
	name=$1
	shift
	${CC:-cc} -O1 -g -std=c11 -Wall -Wextra -Werror -pthread "$@" -I"$build/include" -I"$standin/include" \
		-I"$standin/src" -o "$work/$name" "$standin"/src/*.c "$standin"/driver/*.c
}
run() { # the driver's form, perhaps under a tool
	echo "== $*"
	timeout 300 "$@"
	timeout 300 "$@" "unix:$work/$(date +%N).sock"
}

driver asan -fsanitize=address,undefined -fno-sanitize-recover=all
run "$work/asan"
driver tsan -fsanitize=thread
TSAN_OPTIONS=halt_on_error=1 run "$work/tsan"
command -v valgrind >/dev/null || { echo "valgrind is missing: scripts/setup.sh installs it" >&2; exit 1; }
driver plain
# The queue manager's and the link's threads live as long as the process: what
# they hold at its end is reachable, no leak.
export MQSTANDIN_HEARTBEAT_MS=15000 DRIVER_HEARTBEAT_MS=5000 # it is slow: no false alarms
run valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
	--error-exitcode=1 "$work/plain"
