// Any words and amounts on the wire: each question is refused or answered.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/placement_question.h"
#include "core/topology.h"

namespace {

using namespace numalign;

const Topology& machine() {
  static const auto topology = [] {
    TopologySpec spec;
    for (int cpu = 0; cpu < 16; cpu++)
      spec.cpus.push_back({cpu, cpu / 2 * 2, cpu / 8, cpu / 8 * 8, cpu / 4, cpu / 8});
    for (int node = 0; node < 2; node++) spec.nodes.push_back({node, 1 << 20, {}, {}});
    spec.allowed.insert_range(0, 15);
    spec.possible.insert_range(0, 15);
    return Topology::create(std::move(spec)).value();
  }();
  return *topology;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte says how many of the next eights are amounts.
  if (size == 0) return 0;
  const size_t most = (size - 1) / sizeof(double);
  std::vector<double> amounts(std::min<size_t>(data[0], most));
  if (!amounts.empty()) std::memcpy(amounts.data(), data + 1, amounts.size() * sizeof(double));
  const size_t rest = size - 1 - amounts.size() * sizeof(double);
  std::vector<uint32_t> words(rest / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), data + size - rest, words.size() * sizeof(uint32_t));

  std::vector<uint32_t> answer;
  for (const Topology* topology : {&machine(), static_cast<const Topology*>(nullptr)}) {
    WireReader wire(words, amounts);
    answer_merge(wire, topology, WireWriter(answer));
    WireReader placement(words, amounts);
    answer_placement(placement, topology, WireWriter(answer));
  }
  WireReader memory(words, amounts);
  const MemoryHintsRequest asked = read_memory_hints(memory, memory.node_count());
  if (memory.failure() == nullptr) memory_hints(asked);
  WireReader devices(words, amounts);
  const DeviceHintsRequest wanted = read_device_hints(devices, devices.node_count());
  if (devices.failure() == nullptr) device_hints(wanted);
  WireReader fit(words, amounts);
  const BestFitQuestion question = read_best_fit(fit);
  if (fit.failure() == nullptr && question.count <= 16) {
    (void)near_fit(machine(), question.available, question.count, question.near, question.options);
  }
  return 0;
}
