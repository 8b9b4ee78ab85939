#!/bin/sh
# What a bare Debian needs beyond Go for all targets of provider/ibmmq: a C
# compiler, make, perl for the mutants, valgrind for `make sanitize`. As root.
set -eu
apt-get update -qq
apt-get install -y -qq --no-install-recommends gcc libc6-dev make perl valgrind
