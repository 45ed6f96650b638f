#!/usr/bin/env bash
# Micro-benchmarks of the core, without Node:
#   scripts/core-bench.sh [options of Google Benchmark]   times
#   scripts/core-bench.sh --instructions                  instructions per call, by callgrind: these are repeatable
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "core-bench: $1" >&2
  exit 1
}
need() { command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"; }

need cmake cmake
need make make
need "${CXX:-c++}" g++
echo '#include <benchmark/benchmark.h>' | "${CXX:-c++}" -std=c++20 -E -x c++ - >/dev/null 2>&1 ||
  fail 'Google Benchmark is missing: apt-get install libbenchmark-dev'

build=build/core-bench
mkdir -p "$build"
cmake -S native -B "$build" -DNUMALIGN_BENCH=ON >"$build/log"
cmake --build "$build" -j"${JOBS:-$(nproc)}" >>"$build/log" 2>&1 || fail "it does not compile; see $build/log"

if [ "${1:-}" != --instructions ]; then
  # The median of nine runs, interleaved so that other work on the machine affects all equally.
  [ $# -gt 0 ] || set -- --benchmark_min_time=0.1 --benchmark_repetitions=9 \
    --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
  exec "$build/core_bench" "$@"
fi

need valgrind valgrind
calls=640
printf '%12s  %s\n' instructions 'a call of'
"$build/core_calls" | while IFS=$'\t' read -r number function name; do
  collected=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$function" \
    "$build/core_calls" "$number" "$calls" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
  [ -n "$collected" ] || fail "callgrind counted nothing for $name"
  printf '%12d  %s\n' "$((collected / calls))" "$name"
done
