#!/bin/sh
# hwloc-flags.sh --cflags|--libs: the compiler's or linker's options for hwloc, from pkg-config.
# HWLOC_PREFIX names an hwloc that was built elsewhere; its static library is then linked in.
set -eu
if [ -n "${HWLOC_PREFIX:-}" ]; then
  export PKG_CONFIG_PATH="$HWLOC_PREFIX/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
  if [ ! -e "$HWLOC_PREFIX/lib/pkgconfig/hwloc.pc" ]; then
    echo "numalign: there is no hwloc in HWLOC_PREFIX=$HWLOC_PREFIX: no lib/pkgconfig/hwloc.pc" >&2
    exit 1
  fi
fi
if ! command -v pkg-config >/dev/null 2>&1 || ! pkg-config --exists 'hwloc >= 2.8'; then
  echo "numalign needs hwloc 2.8 or newer and pkg-config to compile: apt-get install libhwloc-dev pkg-config g++ make python3" >&2
  exit 1
fi
if [ -n "${HWLOC_PREFIX:-}" ] && [ "$1" = --libs ]; then set -- --static "$1"; fi
exec pkg-config "$@" hwloc
