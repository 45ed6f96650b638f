// What the hints of memory and devices must keep to: the kubelet's rules, walked mask by mask over all
// amounts and devices, for random requests. Used by the tests and by native/fuzz.
#pragma once

#include <span>
#include <string>

#include "core/device_hints.h"
#include "core/memory_hints.h"
#include "random_machine.h"

namespace numalign::test {

inline uint64_t random_mask(const Between& between, int nodes) {
  uint64_t mask = 0;
  for (int node = 0; node < nodes; node++) mask |= static_cast<uint64_t>(between(0, 1)) << node;
  return mask == 0 ? uint64_t{1} << between(0, nodes - 1) : mask;
}

using Masks = std::vector<uint64_t>;

// Those that are hints, ascending.
inline Masks offered(const HintFamily& family) {
  Masks masks;
  for (uint64_t mask = 1; mask <= all_nodes(family.nodes); mask++) {
    if (family.offers(NodeMask(mask))) masks.push_back(mask);
  }
  return masks;
}

struct PlainMask {
  bool offered;
  bool preferred;
};

// By mask, from 0; its own way to calculateHints: each mask adds up its nodes itself.
inline std::vector<PlainMask> walked_memory_hints(const MemoryHintsRequest& request) {
  size_t masks = size_t{1} << request.nodes;
  std::vector<PlainMask> hints(masks);
  auto sum = [](std::span<const uint64_t> amounts, size_t mask) {
    uint64_t total = 0;
    for (size_t node = 0; node < amounts.size(); node++) total += (mask >> node & 1) != 0 ? amounts[node] : 0;
    return total;
  };
  int least = request.nodes;
  for (size_t mask = 1; mask < masks; mask++) {
    bool ever = true, now = true, open = true;
    for (size_t i = 0; i < request.types.size(); i++) {
      const MemoryType& type = request.types[i];
      uint64_t free = sum(type.free, mask);
      for (const ReusableMemory& row : request.reusable) free += row.mask.bits() == mask ? row.bytes[i] : 0;
      ever = ever && sum(type.allocatable, mask) >= type.request;
      now = now && free >= type.request;
    }
    if (!ever) continue;
    int size = std::popcount(mask);
    least = std::min(least, size);
    for (int node = 0; node < request.nodes; node++) {
      if ((mask >> node & 1) == 0) continue;
      NodeMask group = request.group[node];
      if (size == 1 && group.size() > 1) open = false;
      if (size > 1 && !group.empty() && group.bits() != mask) open = false;
    }
    hints[mask].offered = now && open && (request.must.bits() & ~mask) == 0;
  }
  for (size_t mask = 1; mask < masks; mask++) {
    hints[mask].preferred = hints[mask].offered && std::popcount(mask) == least;
  }
  return hints;
}

inline std::vector<PlainMask> walked_device_hints(const DeviceHintsRequest& request) {
  size_t masks = size_t{1} << request.nodes;
  std::vector<PlainMask> hints(masks);
  int least = request.nodes;
  for (size_t mask = 1; mask < masks; mask++) {
    int all = 0, usable = 0;
    bool has_reusable = true;
    for (const Device& device : request.devices) {
      bool is_near = (device.near.bits() & mask) != 0;
      if (is_near) all++;
      if (is_near && (device.available || device.reusable)) usable++;
      if (!is_near && device.reusable && !device.near.empty()) has_reusable = false;
    }
    if (all >= request.count) least = std::min(least, std::popcount(mask));
    hints[mask].offered = has_reusable && usable >= request.count;
  }
  for (size_t mask = 1; mask < masks; mask++) {
    hints[mask].preferred = hints[mask].offered && std::popcount(mask) == least;
  }
  return hints;
}

// A machine in use: some nodes have nothing, some hold memory alone, some share it.
inline MemoryHintsRequest random_memory_request(const Between& between, int nodes) {
  MemoryHintsRequest request;
  request.nodes = nodes;
  size_t n = static_cast<size_t>(nodes);
  request.group.resize(n);
  for (int groups = between(0, 3); groups > 0; groups--) {
    uint64_t group = chance(between, 50) ? uint64_t{1} << between(0, nodes - 1) : random_mask(between, nodes);
    bool is_apart = true;
    for_each_node(group, [&](int node) { is_apart = is_apart && request.group[node].empty(); });
    for_each_node(group, [&](int node) {
      // Groups that overlap are no reachable state, but must not be misread either.
      if (is_apart || chance(between, 3)) request.group[node] = NodeMask(group);
    });
  }
  if (chance(between, 25)) request.must = NodeMask(random_mask(between, nodes));
  int types = between(1, 3);
  for (int i = 0; i < types; i++) {
    MemoryType& type = request.types.emplace_back();
    int most = between(1, 12);
    for (size_t node = 0; node < n; node++) {
      int allocatable = chance(between, 20) ? 0 : between(0, most);
      bool is_odd = chance(between, 2);
      type.allocatable.push_back(static_cast<uint64_t>(allocatable));
      type.free.push_back(static_cast<uint64_t>(is_odd ? most : between(allocatable / 2, allocatable)));
    }
    type.request = static_cast<uint64_t>(between(1, std::max(1, most * nodes / between(1, 4))));
  }
  for (int rows = between(0, 2); rows > 0; rows--) {
    NodeMask in_use = request.group[between(0, nodes - 1)];
    ReusableMemory& row = request.reusable.emplace_back();
    row.mask = in_use.empty() || chance(between, 30) ? NodeMask(random_mask(between, nodes)) : in_use;
    for (int i = 0; i < types; i++) row.bytes.push_back(static_cast<uint64_t>(between(0, 8)));
  }
  return request;
}

inline DeviceHintsRequest random_device_request(const Between& between, int nodes, bool has_wide) {
  DeviceHintsRequest request;
  request.nodes = nodes;
  for (int i = between(0, 3 * nodes); i > 0; i--) {
    Device device{NodeMask(uint64_t{1} << between(0, nodes - 1)), chance(between, 70), chance(between, 5)};
    if (chance(between, 10)) device.near = NodeMask();
    if (has_wide && chance(between, 30)) device.near = NodeMask(random_mask(between, nodes));
    request.devices.push_back(device);
  }
  request.count = between(1, std::max(1, static_cast<int>(request.devices.size()) / between(1, 4)));
  return request;
}

inline std::string broken_family(const HintFamily& family, const std::vector<PlainMask>& walked) {
  for (uint64_t mask = 1; mask < walked.size(); mask++) {
    if (family.offers(NodeMask(mask)) != walked[mask].offered) {
      return "mask " + std::to_string(mask) + (walked[mask].offered ? " is missing" : " is no hint");
    }
    if (family.prefers(NodeMask(mask)) != walked[mask].preferred) {
      return "mask " + std::to_string(mask) + " is preferred by one only";
    }
  }
  if (HintFamily::from_words(family.to_words()) != family) return "it comes back changed from its words";
  return {};
}

// Draws a request and answers the law that its hints break, or nothing.
inline std::string broken_hint_law(const Between& between) {
  int nodes = between(1, 9);
  MemoryHintsRequest memory = random_memory_request(between, nodes);
  bool has_wide = chance(between, 50);
  DeviceHintsRequest devices = random_device_request(between, nodes, has_wide);
  for (int enumerated : {kEnumeratedNodes, 0}) {
    std::string form = enumerated == 0 ? " implicit: " : " enumerated: ";
    std::string broken = broken_family(memory_hints(memory, enumerated), walked_memory_hints(memory));
    if (!broken.empty()) return "memory," + form + broken;
    HintFamily family = device_hints(devices, enumerated);
    std::vector<PlainMask> walked = walked_device_hints(devices);
    if (!family.approximate) {
      broken = broken_family(family, walked);
      if (!broken.empty()) return "devices," + form + broken;
      continue;
    }
    if (!has_wide || enumerated != 0) return "devices," + form + "approximate without need";
    for (uint64_t mask = 1; mask < walked.size(); mask++) {
      if (family.offers(NodeMask(mask)) && !walked[mask].offered)
        return "devices," + form + "too much is offered";
    }
    if (family.offers(NodeMask(walked.size() - 1)) != walked.back().offered)
      return "devices," + form + "all nodes";
  }
  return {};
}

}  // namespace numalign::test
