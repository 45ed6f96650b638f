// Any machine, any free CPUs, any request: best_fit ends and keeps its laws.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/best_fit.h"
#include "core/id_list.h"
#include "test/support/best_fit_laws.h"
#include "test/support/random_machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace numalign;
  size_t next = 0;
  // When the bytes are used up every choice is the lowest one.
  auto between = [&](int low, int high) {
    unsigned range = static_cast<unsigned>(high - low) + 1;
    unsigned value = 0;
    for (unsigned bytes = range > 256 ? 2 : 1; bytes > 0; bytes--)
      value = value << 8 | (next < size ? data[next++] : 0u);
    return low + static_cast<int>(value % range);
  };
  auto topology = Topology::create(test::random_machine(between, {.max_nodes = 12, .max_cpus = 80}));
  if (!topology.ok()) {
    std::fprintf(stderr, "%s\n", topology.error().message.c_str());
    std::abort();
  }
  for (int requests = 0; requests < 4; requests++) {
    CpuSet available = test::random_available(between, *topology.value());
    int count = between(0, std::min(available.size() + 1, topology.value()->cpus().size()));
    auto all = test::all_best_fit_options();
    const BestFitOptions& options = all[between(0, static_cast<int>(all.size()) - 1)];
    std::string broken = test::broken_law(*topology.value(), available, count, options);
    if (broken.empty()) continue;
    std::fprintf(stderr, "%d CPUs of %s (%s): %s\n", count, format_id_list(available).c_str(),
                 test::describe(options).c_str(), broken.c_str());
    std::abort();
  }
  return 0;
}
