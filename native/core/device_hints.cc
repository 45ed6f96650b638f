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

// ---- Every device counts at one node: the lowest node near it.

Need need_of(const DeviceHintsRequest& request, Kind kind) {
  Need need{static_cast<uint64_t>(request.count), SmallWords(static_cast<size_t>(request.nodes))};
  for (const Device& device : request.devices) {
    if (kind(device) && !device.near.empty()) need.free[std::countr_zero(device.near.bits())]++;
  }
  return need;
}

uint64_t domain_of(const DeviceHintsRequest& request) {
  uint64_t near = 0;
  for (const Device& device : request.devices) near |= device.near.bits();
  return request.only_near_devices && near != 0 ? near : all_nodes(request.nodes);
}

LinearHints linear_hints(const DeviceHintsRequest& request) {
  LinearHints linear;
  linear.domain = NodeMask(domain_of(request));
  linear.needs.push_back(need_of(request, is_usable));
  const SmallWords reusable = need_of(request, is_reusable).free;
  for (size_t node = 0; node < reusable.size(); node++) {
    if (reusable[node] > 0) linear.must = linear.must | NodeMask(uint64_t{1} << node);
  }
  Need ever = need_of(request, is_any);
  FewestNodes least = fewest_nodes({&ever, 1}, NodeMask(), linear.domain);
  linear.narrowest = least.count == 0 ? request.nodes : least.count;
  return linear;
}

// ---- Some devices are near several nodes, and count at each of them.

// For each mask, the sum of `weigh` over devices that are near some node, but none of the mask. The
// empty mask misses all of them.
template <class Weigh>
std::vector<uint64_t> missed_by_mask(const DeviceHintsRequest& request, Weigh&& weigh) {
  std::vector<uint64_t> missed(size_t{1} << request.nodes);
  for (const Device& device : request.devices) {
    if (!device.near.empty()) missed[all_nodes(request.nodes) & ~device.near.bits()] += weigh(device);
  }
  superset_sums(missed, false);
  return missed;
}

// The masks for which test(missed[mask]) is true, except the empty mask.
template <class Test>
SmallWords bits_where(std::span<const uint64_t> missed, Test&& test) {
  SmallWords bits((missed.size() + 63) / 64);
  for (size_t i = 0; i < bits.size(); i++) {
    std::span<const uint64_t> part = missed.subspan(i * 64, std::min<size_t>(64, missed.size()));
    for (size_t j = 0; j < part.size(); j++) bits[i] |= uint64_t{test(part[j])} << j;
  }
  bits[0] &= ~uint64_t{1};
  return bits;
}

HintBits enumerate(const DeviceHintsRequest& request) {
  // Both numbers in one word: all devices in the lower half, usable ones in the upper.
  std::vector<uint64_t> missed = missed_by_mask(
      request, [](const Device& device) { return uint64_t{1} | uint64_t{is_usable(device)} << 32; });
  uint64_t count = static_cast<uint64_t>(request.count);
  uint64_t total = missed[0];
  HintBits bits;
  bits.offered = bits_where(missed, [&](uint64_t m) { return (total - m) >> 32 >= count; });
  SmallWords ever = bits_where(missed, [&](uint64_t m) { return ((total - m) & UINT32_MAX) >= count; });
  if (std::ranges::any_of(request.devices, is_reusable)) {
    missed = missed_by_mask(request, [](const Device& device) { return uint64_t{is_reusable(device)}; });
    SmallWords touching = bits_where(missed, [](uint64_t m) { return m == 0; });
    for (size_t i = 0; i < touching.size(); i++) bits.offered[i] &= touching[i];
  }
  uint64_t outside = all_nodes(request.nodes) & ~domain_of(request);
  for (uint64_t mask = 0; outside != 0 && mask < uint64_t{1} << request.nodes; mask++) {
    if ((mask & outside) != 0) bits.offered[mask / 64] &= ~(uint64_t{1} << (mask % 64));
  }
  bits.prefer_size(std::min(HintBits::narrowest(ever), request.nodes));
  return bits;
}

}  // namespace

HintFamily device_hints(const DeviceHintsRequest& request, int enumerated) {
  assert(request.count >= 1 && request.nodes >= 1 && request.nodes <= NodeMask::kBits);
  LinearHints linear = linear_hints(request);
  bool has_wide = std::ranges::any_of(request.devices, [](const Device& d) { return d.near.size() > 1; });
  // Both ways of counting give the full mask every device.
  bool is_enumerated = has_wide && request.nodes <= enumerated && !linear.is_empty();
  HintFamily family = family_of(std::move(linear), request.nodes, enumerated);
  if (is_enumerated) family.masks = enumerate(request);
  family.approximate = has_wide && std::holds_alternative<LinearHints>(family.masks);
  return family;
}

}  // namespace numalign
