{
  "targets": [
    {
      "target_name": "numalign",
      "sources": ["<!@(sed s,^,native/, native/sources.txt)"],
      "include_dirs": ["native", "<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": ["NAPI_VERSION=9", "NODE_ADDON_API_CPP_EXCEPTIONS_ALL", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"],
      "cflags": ["-fvisibility=hidden", "-ffunction-sections", "-Wall", "-Wextra", "-Wno-restrict", "<!@(sh scripts/hwloc-flags.sh --cflags)"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++20", "-fexceptions", "-fvisibility-inlines-hidden"],
      "libraries": ["<!@(sh scripts/hwloc-flags.sh --libs)"],
      # The core's own tests run with its assertions.
      "configurations": {"Release": {"defines": ["NDEBUG"]}},
      # What is kept of a machine says by its build which addon found it (platform/discovery/machine_file.h).
      # Node closes an addon with the last environment that loaded it, but threads and state of the process stay.
      "ldflags": ["-Wl,--version-script=../native/addon/exports.map", "-Wl,--gc-sections", "-Wl,-z,nodelete", "-Wl,--build-id"]
    }
  ]
}
