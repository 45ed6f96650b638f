#!/usr/bin/env bash
# Runs the addon's tests in Node under sanitizers: scripts/addon-sanitizers.sh [address|thread]
# address: AddressSanitizer and UndefinedBehaviorSanitizer; thread: ThreadSanitizer.
# They run in build/addon-SANITIZER, a copy of the built package with an addon that is compiled for it. Node itself is
# not: of V8 and libuv a sanitizer sees the calls of the C library.
# JOBS=n bounds how many compilers run at a time.
set -euo pipefail
. "$(dirname "$0")/cxx-steps.sh"

sanitizer=${1:-address}
root=$PWD
copy=$root/build/addon-$sanitizer
reports=$copy/reports
tests=(test/addon/environments.test.ts test/lifecycle/workers.test.ts test/threads/{parts,pool}.test.ts)
case $sanitizer in
  address)
    library=libasan.so
    tests+=(test/addon/notices.test.ts test/state/lock.test.ts test/threads/memory.test.ts)
    # What V8 still has at the end is no leak of the addon.
    export ASAN_OPTIONS=detect_leaks=0:log_path=$reports/report
    export UBSAN_OPTIONS=print_stacktrace=1
    ;;
  thread)
    # Python, which other tests start, does not run with it.
    library=libtsan.so
    # sanitizer-reports.mjs decides which reports count.
    export TSAN_OPTIONS=exitcode=0:die_after_fork=0:history_size=7:log_path=$reports/report
    ;;
  *) fail "the sanitizer is address or thread, not \"$sanitizer\"" ;;
esac

need "$cxx" g++
preload=$("$cxx" -print-file-name="$library")
[ -e "$preload" ] || fail "$cxx has no $library: CXX must be GCC's"

# As core-tests.sh, and as far below the package: so ccache has the core and the platform.
build "build/addon-objects-$sanitizer" -S native -DNUMALIGN_SANITIZER="$sanitizer" \
  -DCMAKE_JS_INC="$root/node_modules/node-api-headers/include" \
  -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$copy/build/Release"

rm -rf "$reports"
mkdir "$reports"
for name in dist dist-test lib scripts test package.json tsconfig.json vitest.config.ts; do
  rm -rf "${copy:?}/$name"
  cp -a "$name" "$copy"
done
ln -sfn "$root/node_modules" "$copy/node_modules"

status=0
vitest=(node node_modules/vitest/vitest.mjs run --config test/addon/vitest.config.ts)
(cd "$copy" && LD_PRELOAD=$preload exec "${under[@]}" "${vitest[@]}" "${tests[@]}") || status=$?
node scripts/sanitizer-reports.mjs "$reports" || status=1
exit "$status"
