#!/usr/bin/env bash
# Builds and runs the C++ unit tests: scripts/core-tests.sh [none|address|thread]
# address: AddressSanitizer and UndefinedBehaviorSanitizer; thread: ThreadSanitizer, for the files of tests that
# start threads.
# JOBS=n bounds how many compilers and tests run at a time.
# NUMALIGN_TEST_SEED=n repeats the random tests of the run that printed n.
set -euo pipefail
. "$(dirname "$0")/cxx-steps.sh"

sanitizer=${1:-none}
case $sanitizer in
  none | address | thread) ;;
  *) fail "the sanitizer is none, address or thread, not \"$sanitizer\"" ;;
esac

need "$cxx" g++
echo '#include <gtest/gtest.h>' | "$cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1 ||
  fail 'GoogleTest is missing: apt-get install libgtest-dev'

folder=build/core-$sanitizer
build "$folder" -S native -DNUMALIGN_SANITIZER="$sanitizer"
"${under[@]}" ctest --test-dir "$folder" --output-on-failure -j"$jobs"
