#!/usr/bin/env bash
# Micro-benchmarks of the core, without Node:
#   scripts/core-bench.sh [options of Google Benchmark]   times
#   scripts/core-bench.sh --instructions                  instructions per call, by callgrind: these are repeatable
set -euo pipefail
. "$(dirname "$0")/cxx-steps.sh"

need "$cxx" g++
echo '#include <benchmark/benchmark.h>' | "$cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1 ||
  fail 'Google Benchmark is missing: apt-get install libbenchmark-dev'

folder=build/core-bench
mkdir -p "$folder"
build "$folder" -S native -DNUMALIGN_BENCH=ON >"$folder/log" 2>&1 || fail "it does not compile; see $folder/log"

if [ "${1:-}" != --instructions ]; then
  # The median of nine runs, interleaved so that other work on the machine affects all equally.
  [ $# -gt 0 ] || set -- --benchmark_min_time=0.1 --benchmark_repetitions=9 \
    --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
  exec "$folder/core_bench" "$@"
fi

need valgrind valgrind
calls=640
printf '%12s  %s\n' instructions 'a call of'
"$folder/core_calls" | while IFS=$'\t' read -r number function name; do
  collected=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$function" \
    "$folder/core_calls" "$number" "$calls" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
  [ -n "$collected" ] || fail "callgrind counted nothing for $name"
  printf '%12d  %s\n' "$((collected / calls))" "$name"
done
