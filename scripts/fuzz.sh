#!/usr/bin/env bash
# Builds the fuzz targets of native/fuzz and runs each for a while: scripts/fuzz.sh SECONDS
# Inputs found on the way are kept in build/fuzz/corpus, inputs that fail in build/fuzz/artifacts.
set -euo pipefail
. "$(dirname "$0")/cxx-steps.sh"

seconds=${1:-}
case $seconds in
  '' | *[!0-9]* | 0) fail 'say for how many seconds each target runs: scripts/fuzz.sh SECONDS' ;;
esac

# clang++ if it exists, else the newest clang++-N.
clang=${CXX:-}
if [ -z "$clang" ]; then
  clang=$(command -v clang++ || compgen -c | grep -E '^clang\+\+-[0-9]+$' | sort -t- -k2 -n | tail -n 1 || true)
fi
[ -n "$clang" ] || fail 'clang is missing: apt-get install clang libclang-rt-dev (Debian 12: clang-14 libclang-rt-14-dev)'
folder=build/fuzz
mkdir -p "$folder"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$clang" -fsanitize=fuzzer,address,undefined -x c++ - -o "$folder/probe" 2>/dev/null ||
  fail "$clang cannot link libFuzzer: apt-get install libclang-rt-dev (Debian 12: libclang-rt-14-dev)"

build "$folder" -S native -DNUMALIGN_FUZZ=ON -DCMAKE_CXX_COMPILER="$clang"

mkdir -p "$folder/artifacts"

# Runs one target, and shows its output once it has ended.
fuzz() {
  local name=$1 status=0
  local seeds=native/fuzz/corpus/${name%_fuzz} corpus=$folder/corpus/${name%_fuzz}
  mkdir -p "$corpus"
  local folders=("$corpus")
  if [ -d "$seeds" ]; then folders+=("$seeds"); fi
  "$folder/$name" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$folder/artifacts/$name-" "${folders[@]}" >"$folder/$name.log" 2>&1 || status=$?
  echo "== $name, $seconds s"
  cat "$folder/$name.log"
  return "$status"
}

# As many at the same time as there are CPUs: each takes one. xargs fails if one of them does.
export -f fuzz
export folder seconds
basename -a -s .cc native/fuzz/*_fuzz.cc | xargs -P "$(nproc)" -I NAME bash -c 'fuzz NAME'
