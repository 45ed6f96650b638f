#!/usr/bin/env bash
# Builds and runs the C++ unit tests: scripts/core-tests.sh [none|address|thread]
# address: AddressSanitizer and UndefinedBehaviorSanitizer; thread: ThreadSanitizer, for the files of tests that
# start threads.
# JOBS=n bounds how many compilers and tests run at a time.
# NUMALIGN_TEST_SEED=n repeats the random tests of the run that printed n.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "core-tests: $1" >&2
  exit 1
}
need() { command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"; }

sanitizer=${1:-none}
case $sanitizer in
  none | address | thread) ;;
  *) fail "the sanitizer is none, address or thread, not \"$sanitizer\"" ;;
esac

cxx=${CXX:-c++}
need cmake cmake
need make make
need "$cxx" g++
echo '#include <gtest/gtest.h>' | "$cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1 ||
  fail 'GoogleTest is missing: apt-get install libgtest-dev'

build=build/core-$sanitizer
cmake -S native -B "$build" -DNUMALIGN_SANITIZER="$sanitizer"
jobs=${JOBS:-$(nproc)}
# Other tests may run beside the compilers.
nice -n 10 cmake --build "$build" -j"$jobs"

# ThreadSanitizer of GCC 12 and clang 14 stops with "unexpected memory mapping" if the kernel
# randomises addresses by more bits than it knows (vm.mmap_rnd_bits above 28). Without randomisation
# it always runs. Some containers forbid personality().
run=()
if [ "$sanitizer" = thread ] && setarch -R true 2>/dev/null; then run=(setarch -R); fi

"${run[@]}" ctest --test-dir "$build" --output-on-failure -j"$jobs"
