#!/bin/sh
# format-cpp.sh [--check]: formats the C++ files, or lists those that are not formatted. Without
# clang-format the check fails only if C++ files differ from the commit before the last.
set -eu
cd "$(dirname "$0")/.."
tool=
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null 2>&1; then tool=$name; break; fi
done
if [ -z "$tool" ]; then
  how='apt-get install clang-format-14'
  if [ "${1:-}" = --check ] && git diff --quiet HEAD~ -- native 2>/dev/null &&
    [ -z "$(git ls-files --others --exclude-standard native)" ]; then
    echo "format-cpp: C++ was not checked: clang-format is missing ($how), and native/ has not changed" >&2
    exit 0
  fi
  echo "format-cpp: please install clang-format: $how" >&2
  exit 1
fi
find native -name '*.h' -o -name '*.cc' | sort | if [ "${1:-}" = --check ]; then
  xargs "$tool" --dry-run --Werror
else
  xargs "$tool" -i
fi
