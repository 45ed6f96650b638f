# What the scripts that build with CMake have in common; they source it.
cd "$(dirname "$0")/.."

fail() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}
need() { command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"; }

cxx=${CXX:-c++}
jobs=${JOBS:-$(nproc)}
need cmake cmake
need make make

# build FOLDER OPTION...: configures and compiles there. Other tests may run beside the compilers.
build() { cmake -B "$@" && nice -n 10 cmake --build "$1" -j"$jobs"; }

# ThreadSanitizer of GCC 12 and clang 14 stops with "unexpected memory mapping" if the kernel
# randomises addresses by more bits than it knows (vm.mmap_rnd_bits above 28). Without randomisation
# it always runs. Some containers forbid personality().
under=()
if [ "${1:-}" = thread ] && setarch -R true 2>/dev/null; then under=(setarch -R); fi
