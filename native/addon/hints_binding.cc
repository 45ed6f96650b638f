// Bindings of the topology hints and their merge. A family of hints crosses as the words of
// HintFamily::to_words().
#include <algorithm>
#include <cmath>

#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/topology_binding.h"
#include "core/cpu_hints.h"
#include "core/device_hints.h"
#include "core/hint_listing.h"
#include "core/hint_merger.h"
#include "core/memory_hints.h"

namespace numalign::addon {
namespace {

HintFamily to_family(Napi::Env env, std::span<const uint32_t> words) {
  std::optional<HintFamily> family = HintFamily::from_words(words);
  if (!family) throw Napi::TypeError::New(env, "these words are no family of hints");
  return *std::move(family);
}

// Of every set and list an argument says how many words of it are on the wire, in the order of the arguments.

// (topology, available, reusable, count, alignBySocket) -> family
Napi::Value cpu_hints_binding(const Napi::CallbackInfo& info) {
  const Topology& topology = to_topology(info[0]);
  WireReader wire(info.Env());
  CpuHintsRequest request{.available = wire.id_set<CpuTag>(info[1]),
                          .reusable = wire.id_set<CpuTag>(info[2]),
                          .count = to_int(info[3], "the count"),
                          .align_by_socket = to_bool(info[4], "alignBySocket")};
  if (request.count < 1 || topology.spec().nodes.size() > NodeMask::kBits) {
    throw Napi::RangeError::New(info.Env(), "hints are for at least one CPU and at most 64 NUMA nodes");
  }
  return to_wire(info.Env(), cpu_hints(topology, request).to_words());
}

int to_node_count(const Napi::Value& value) {
  int nodes = to_int(value, "the number of nodes");
  if (nodes >= 1 && nodes <= NodeMask::kBits) return nodes;
  throw Napi::RangeError::New(value.Env(), "hints are for 1 to 64 NUMA nodes");
}

NodeMask to_mask(Napi::Env env, uint32_t low, uint32_t high, int nodes) {
  uint64_t mask = low | uint64_t{high} << 32;
  if ((mask & ~all_nodes(nodes)) != 0)
    throw Napi::RangeError::New(env, "a mask has nodes of another machine");
  return NodeMask(mask);
}

// Reads amounts one by one, each an integer below 2^53. REQUIRES: not read past the end.
class Amounts {
 public:
  Amounts(Napi::Env env, std::span<const double> amounts) : env_(env), amounts_(amounts) {}

  size_t left() const { return amounts_.size(); }
  uint64_t next() {
    double amount = amounts_.front();
    amounts_ = amounts_.subspan(1);
    if (!(amount >= 0 && amount < kLimit) || amount != std::floor(amount)) {
      throw Napi::RangeError::New(env_, "amounts are integers from 0 to 2^53 - 1");
    }
    return static_cast<uint64_t>(amount);
  }
  // As many as there are nodes.
  std::vector<uint64_t> by_node(int nodes) {
    std::vector<uint64_t> amounts;
    uint64_t sum = 0;
    for (int node = 0; node < nodes; node++) {
      amounts.push_back(next());
      sum += amounts.back();
    }
    if (sum >= static_cast<uint64_t>(kLimit)) {
      throw Napi::RangeError::New(env_, "the amounts of all nodes together are at most 2^53 - 1");
    }
    return amounts;
  }
  uint32_t word() {
    uint64_t amount = next();
    if (amount <= UINT32_MAX) return static_cast<uint32_t>(amount);
    throw Napi::RangeError::New(env_, "half a mask is a word of 32 bits");
  }

 private:
  static constexpr double kLimit = 9007199254740992.0;  // 2^53
  Napi::Env env_;
  std::span<const double> amounts_;
};

// (nodes, types, for each type [request, free by node, allocatable by node], rows of [low, high, reusable
// bytes by type], groups by node (low, high each), must [low, high]) -> family
Napi::Value memory_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  MemoryHintsRequest request;
  request.nodes = to_node_count(info[0]);
  size_t nodes = static_cast<size_t>(request.nodes);
  int types = to_int(info[1], "the number of types");
  WireReader wire(env);
  Amounts amounts(env, wire.amounts(info[2]));
  Amounts reusable(env, wire.amounts(info[3]));
  std::span<const uint32_t> groups = wire.words(info[4]);
  std::span<const uint32_t> must = wire.words(info[5]);
  size_t row = static_cast<size_t>(std::max(types, 0)) + 2;
  if (types < 1 || amounts.left() != (row - 2) * (1 + 2 * nodes) || groups.size() != 2 * nodes ||
      reusable.left() % row != 0) {
    throw Napi::RangeError::New(env, "at least one type, and every array as long as nodes and types need it");
  }
  for (int i = 0; i < types; i++) {
    MemoryType& type = request.types.emplace_back();
    type.request = amounts.next();
    if (type.request == 0) throw Napi::RangeError::New(env, "a request for memory is at least one byte");
    type.free = amounts.by_node(request.nodes);
    type.allocatable = amounts.by_node(request.nodes);
  }
  for (size_t node = 0; node < nodes; node++) {
    request.group.push_back(to_mask(env, groups[2 * node], groups[2 * node + 1], request.nodes));
  }
  while (reusable.left() > 0) {
    ReusableMemory& memory = request.reusable.emplace_back();
    uint32_t low = reusable.word();
    memory.mask = to_mask(env, low, reusable.word(), request.nodes);
    if (memory.mask.empty()) throw Napi::RangeError::New(env, "reusable memory is of at least one node");
    for (int i = 0; i < types; i++) memory.bytes.push_back(reusable.next());
  }
  if (must.size() != 2) throw Napi::RangeError::New(env, "a mask is two words");
  request.must = to_mask(env, must[0], must[1], request.nodes);
  return to_wire(env, memory_hints(request).to_words());
}

// (nodes, request, rows of [low, high, available | reusable << 1]) -> family
Napi::Value device_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  DeviceHintsRequest request;
  request.nodes = to_node_count(info[0]);
  request.count = to_int(info[1], "the request");
  std::span<const uint32_t> words = WireReader(env).words(info[2]);
  if (request.count < 1 || words.size() % 3 != 0) {
    throw Napi::RangeError::New(env, "hints are for at least one device, and three words describe each");
  }
  for (; !words.empty(); words = words.subspan(3)) {
    if (words[2] > 3)
      throw Napi::RangeError::New(env, "a device is available (1), reusable (2), both or neither");
    request.devices.push_back(
        {to_mask(env, words[0], words[1], request.nodes), (words[2] & 1) != 0, (words[2] & 2) != 0});
  }
  return to_wire(env, device_hints(request).to_words());
}

Napi::Value whole_cores_binding(const Napi::CallbackInfo& info) {
  return to_wire(info.Env(),
                 whole_cores(to_topology(info[0]), WireReader(info.Env()).id_set<CpuTag>(info[1])));
}

// (words, nodes) -> whether they are a family of hints of so many nodes
Napi::Value is_hint_family(const Napi::CallbackInfo& info) {
  std::optional<HintFamily> family = HintFamily::from_words(WireReader(info.Env()).words(info[0]));
  return Napi::Boolean::New(info.Env(), family && family->nodes == to_int(info[1], "the number of nodes"));
}

// (words, after [low, high], limit, whether the steps are limited) -> [whether it is whole, then for each
// hint (low, high, preferred)]
Napi::Value list_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  WireReader wire(env);
  HintFamily family = to_family(env, wire.words(info[0]));
  std::span<const uint32_t> after = wire.words(info[1]);
  int limit = to_int(info[2], "the limit");
  if (after.size() != 2 || limit < 0)
    throw Napi::RangeError::New(env, "a mask is two words, a limit not below 0");
  HintListing listing =
      list_hints(family, to_mask(env, after[0], after[1], family.nodes), static_cast<size_t>(limit),
                 to_bool(info[3], "isBounded") ? kStepsToFirst : UINT64_MAX);
  std::vector<uint32_t> words{listing.is_whole ? 1u : 0u};
  for (const ListedHint& hint : listing.hints) {
    words.push_back(static_cast<uint32_t>(hint.mask.bits()));
    words.push_back(static_cast<uint32_t>(hint.mask.bits() >> 32));
    words.push_back(hint.preferred ? 1 : 0);
  }
  return to_wire(env, words);
}

// (words, masks [low, high each]) -> family
Napi::Value without_preferred_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  WireReader wire(env);
  HintFamily family = to_family(env, wire.words(info[0]));
  std::span<const uint32_t> words = wire.words(info[1]);
  std::vector<NodeMask> masks;
  for (; words.size() >= 2; words = words.subspan(2)) {
    masks.push_back(to_mask(env, words[0], words[1], family.nodes));
  }
  return to_wire(env, without_preferred(std::move(family), masks).to_words());
}

// On the wire: how many families, nodes, the policy, how many distances; of each family its length and its
// words; the distances. What comes back there: low, high, any | preferred << 1 | admitted << 2 | exact << 3.
// Arguments and an answer would take as long as the merge.
Napi::Value merge_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::span<uint32_t> wire = Environment::of(env).words;
  std::span<const uint32_t> words = wire;
  auto take = [&](size_t n) {
    if (n > words.size()) throw Napi::RangeError::New(env, "there are not as many words on the wire");
    std::span<const uint32_t> taken = words.first(n);
    words = words.subspan(n);
    return taken;
  };
  std::span<const uint32_t> head = take(4);
  const size_t count = head[0], distances = head[3];
  if (head[1] < 1 || head[1] > NodeMask::kBits || head[2] > 3) {
    throw Napi::RangeError::New(env, "1 to 64 nodes, and a policy from 0 to 3");
  }
  MergeOptions options;
  options.nodes = static_cast<int>(head[1]);
  options.policy = static_cast<TopologyPolicy>(head[2]);
  std::vector<HintFamily> families;
  families.reserve(std::min(words.size(), count));
  for (size_t i = 0; i < count; i++) {
    size_t length = take(1).front();
    families.push_back(to_family(env, take(length)));
    if (families.back().nodes != options.nodes) {
      throw Napi::RangeError::New(env, "a family of hints is of another number of nodes");
    }
  }
  if (distances != 0 && distances != size_t{head[1]} * head[1]) {
    throw Napi::RangeError::New(env, "a distance is needed for each pair of nodes");
  }
  options.distances = take(distances);
  MergedHint merged = merge_hints(families, options);
  uint32_t flags = (merged.any ? 1u : 0u) | (merged.preferred ? 2u : 0u) | (merged.admitted ? 4u : 0u) |
                   (merged.exact ? 8u : 0u);
  wire[0] = static_cast<uint32_t>(merged.mask.bits());
  wire[1] = static_cast<uint32_t>(merged.mask.bits() >> 32);
  wire[2] = flags;
  return {};
}

}  // namespace

void export_hints(Napi::Env env, Napi::Object exports) {
  exports["cpuHints"] = Napi::Function::New(env, cpu_hints_binding);
  exports["memoryHints"] = Napi::Function::New(env, memory_hints_binding);
  exports["deviceHints"] = Napi::Function::New(env, device_hints_binding);
  exports["wholeCores"] = Napi::Function::New(env, whole_cores_binding);
  exports["isHintFamily"] = Napi::Function::New(env, is_hint_family);
  exports["listHints"] = Napi::Function::New(env, list_hints_binding);
  exports["withoutPreferred"] = Napi::Function::New(env, without_preferred_binding);
  exports["mergeHints"] = Napi::Function::New(env, merge_hints_binding);
}

}  // namespace numalign::addon
