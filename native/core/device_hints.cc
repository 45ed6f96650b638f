#include "core/device_hints.h"

#include <algorithm>

#include "core/fewest_nodes.h"
#include "core/superset_sums.h"

namespace numalign {
namespace {

bool is_usable(const Device& device) { return device.available || device.reusable; }
bool is_reusable(const Device& device) { return device.reusable; }
bool is_any(const Device&) { return true; }

using Kind = bool (*)(const Device&);

// ---- every device counts at one node: the lowest it is near

Need need_of(const DeviceHintsRequest& request, Kind kind) {
  Need need{static_cast<uint64_t>(request.count), std::vector<uint64_t>(static_cast<size_t>(request.nodes))};
  for (const Device& device : request.devices) {
    if (kind(device) && !device.near.empty()) need.free[std::countr_zero(device.near.bits())]++;
  }
  return need;
}

LinearHints linear_hints(const DeviceHintsRequest& request) {
  LinearHints linear;
  linear.domain = NodeMask(all_nodes(request.nodes));
  linear.needs.push_back(need_of(request, is_usable));
  std::vector<uint64_t> reusable = need_of(request, is_reusable).free;
  for (size_t node = 0; node < reusable.size(); node++) {
    if (reusable[node] > 0) linear.must = linear.must | NodeMask(uint64_t{1} << node);
  }
  Need ever = need_of(request, is_any);
  FewestNodes least = fewest_nodes({&ever, 1}, NodeMask(), linear.domain);
  linear.narrowest = least.count == 0 ? request.nodes : least.count;
  return linear;
}

// ---- some are near several nodes: they count at each of them

// For each mask the devices that are near some node, but near none of the mask.
std::vector<uint32_t> missed_by(const DeviceHintsRequest& request, Kind kind) {
  std::vector<uint32_t> missed(size_t{1} << request.nodes);
  for (const Device& device : request.devices) {
    if (kind(device) && !device.near.empty()) missed[all_nodes(request.nodes) & ~device.near.bits()]++;
  }
  superset_sums(missed, false);
  return missed;
}

HintBits enumerate(const DeviceHintsRequest& request) {
  HintBits bits;
  bits.offered.resize(HintBits::bit_words(request.nodes));
  bits.preferred.resize(bits.offered.size());
  uint32_t count = static_cast<uint32_t>(request.count);
  // The empty mask misses all of them.
  std::vector<uint32_t> missed = missed_by(request, is_any);
  int narrowest = request.nodes;
  for (size_t mask = 1; mask < missed.size(); mask++) {
    if (missed[0] - missed[mask] >= count) narrowest = std::min(narrowest, std::popcount(mask));
  }
  missed = missed_by(request, is_usable);
  for (size_t mask = 1; mask < missed.size(); mask++) {
    if (missed[0] - missed[mask] >= count) HintBits::set(bits.offered, mask);
  }
  missed = missed_by(request, is_reusable);
  for (size_t mask = 1; missed[0] > 0 && mask < missed.size(); mask++) {
    if (missed[mask] > 0) bits.offered[mask / 64] &= ~(uint64_t{1} << (mask % 64));
  }
  for (size_t mask = 1; mask < missed.size(); mask++) {
    if (std::popcount(mask) == narrowest && HintBits::test(bits.offered, mask)) {
      HintBits::set(bits.preferred, mask);
    }
  }
  return bits;
}

}  // namespace

HintFamily device_hints(const DeviceHintsRequest& request, int enumerated) {
  assert(request.count >= 1 && request.nodes >= 1 && request.nodes <= NodeMask::kBits);
  LinearHints linear = linear_hints(request);
  bool has_wide = std::ranges::any_of(request.devices, [](const Device& d) { return d.near.size() > 1; });
  // The full mask has every device in either way of counting.
  bool is_enumerated = has_wide && request.nodes <= enumerated && !linear.is_empty();
  HintFamily family = family_of(std::move(linear), request.nodes, enumerated);
  if (is_enumerated) family.masks = enumerate(request);
  family.approximate = has_wide && std::holds_alternative<LinearHints>(family.masks);
  return family;
}

}  // namespace numalign
