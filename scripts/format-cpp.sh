#!/bin/sh
# format-cpp.sh [--check]: formats the C++ files, or lists those that are not formatted.
set -eu
cd "$(dirname "$0")/.."
tool=
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null 2>&1; then tool=$name; break; fi
done
if [ -z "$tool" ]; then
  echo "format-cpp: please install clang-format: apt-get install clang-format-14" >&2
  exit 1
fi
find native -name '*.h' -o -name '*.cc' | sort | if [ "${1:-}" = --check ]; then
  xargs "$tool" --dry-run --Werror
else
  xargs "$tool" -i
fi
