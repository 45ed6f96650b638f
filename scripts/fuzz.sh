#!/usr/bin/env bash
# Builds the fuzz targets of native/fuzz and runs each for a while: scripts/fuzz.sh SECONDS
# Inputs found on the way are kept in build/fuzz/corpus, inputs that fail in build/fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "fuzz: $1" >&2
  exit 1
}

seconds=${1:-}
case $seconds in
  '' | *[!0-9]* | 0) fail 'say for how many seconds each target runs: scripts/fuzz.sh SECONDS' ;;
esac

command -v cmake >/dev/null || fail 'cmake is missing: apt-get install cmake'
command -v make >/dev/null || fail 'make is missing: apt-get install make'

# clang++ if it exists, else the newest clang++-N.
clang=${CXX:-}
if [ -z "$clang" ]; then
  clang=$(command -v clang++ || compgen -c | grep -E '^clang\+\+-[0-9]+$' | sort -t- -k2 -n | tail -n 1 || true)
fi
[ -n "$clang" ] || fail 'clang is missing: apt-get install clang libclang-rt-dev (Debian 12: clang-14 libclang-rt-14-dev)'
build=build/fuzz
mkdir -p "$build"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$clang" -fsanitize=fuzzer,address,undefined -x c++ - -o "$build/probe" 2>/dev/null ||
  fail "$clang cannot link libFuzzer: apt-get install libclang-rt-dev (Debian 12: libclang-rt-14-dev)"

cmake -S native -B "$build" -DNUMALIGN_FUZZ=ON -DCMAKE_CXX_COMPILER="$clang"
cmake --build "$build" -j"$(nproc)"

mkdir -p "$build/artifacts"

# Runs one target, and shows its output once it has ended.
fuzz() {
  local name=$1 status=0
  local seeds=native/fuzz/corpus/${name%_fuzz} corpus=$build/corpus/${name%_fuzz}
  mkdir -p "$corpus"
  local folders=("$corpus")
  if [ -d "$seeds" ]; then folders+=("$seeds"); fi
  "$build/$name" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$build/artifacts/$name-" "${folders[@]}" >"$build/$name.log" 2>&1 || status=$?
  echo "== $name, $seconds s"
  cat "$build/$name.log"
  return "$status"
}

# As many at the same time as there are CPUs: each takes one. xargs fails if one of them does.
export -f fuzz
export build seconds
basename -a -s .cc native/fuzz/*_fuzz.cc | xargs -P "$(nproc)" -I NAME bash -c 'fuzz NAME'
