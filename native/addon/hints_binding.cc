// Bindings of the topology hints and their merge. A family of hints crosses as the words of
// HintFamily::to_words() in a Uint32Array.
#include <algorithm>
#include <cmath>

#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/topology_binding.h"
#include "core/cpu_hints.h"
#include "core/device_hints.h"
#include "core/hint_merger.h"
#include "core/memory_hints.h"

namespace numalign::addon {
namespace {

std::span<const uint32_t> to_words(const Napi::Value& value, const char* what) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    throw Napi::TypeError::New(value.Env(), std::string(what) + " must be a Uint32Array");
  }
  auto words = value.As<Napi::Uint32Array>();
  return {words.Data(), words.ElementLength()};
}

Napi::Value from_words(Napi::Env env, std::span<const uint32_t> words) {
  auto array = Napi::Uint32Array::New(env, words.size());
  std::ranges::copy(words, array.Data());
  return array;
}

HintFamily to_family(const Napi::Value& value) {
  std::optional<HintFamily> family = HintFamily::from_words(to_words(value, "a family of hints"));
  if (!family) throw Napi::TypeError::New(value.Env(), "these words are no family of hints");
  return *std::move(family);
}

// (topology, available, reusable, count, alignBySocket) -> family
Napi::Value cpu_hints_binding(const Napi::CallbackInfo& info) {
  const Topology& topology = to_topology(info[0]);
  CpuHintsRequest request{to_id_set<CpuTag>(info[1]), to_id_set<CpuTag>(info[2]),
                          to_int(info[3], "the count"), to_bool(info[4], "alignBySocket")};
  if (request.count < 1 || topology.spec().nodes.size() > NodeMask::kBits) {
    throw Napi::RangeError::New(info.Env(), "hints are for at least one CPU and at most 64 NUMA nodes");
  }
  return from_words(info.Env(), cpu_hints(topology, request).to_words());
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

// Reads numbers of a Float64Array one by one, each an integer below 2^53. REQUIRES: not read past the end.
class Amounts {
 public:
  Amounts(const Napi::Value& value, const char* what) : env_(value.Env()) {
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float64_array) {
      throw Napi::TypeError::New(env_, std::string(what) + " must be a Float64Array");
    }
    auto array = value.As<Napi::Float64Array>();
    amounts_ = {array.Data(), array.ElementLength()};
  }

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

// (nodes, types, for each type [request, free by node, allocatable by node], groups by node (low, high each),
// rows of [low, high, reusable bytes by type], must [low, high]) -> family
Napi::Value memory_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  MemoryHintsRequest request;
  request.nodes = to_node_count(info[0]);
  size_t nodes = static_cast<size_t>(request.nodes);
  int types = to_int(info[1], "the number of types");
  Amounts amounts(info[2], "the amounts");
  std::span<const uint32_t> groups = to_words(info[3], "the groups");
  Amounts reusable(info[4], "the reusable memory");
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
  std::span<const uint32_t> must = to_words(info[5], "the nodes that must be included");
  if (must.size() != 2) throw Napi::RangeError::New(env, "a mask is two words");
  request.must = to_mask(env, must[0], must[1], request.nodes);
  return from_words(env, memory_hints(request).to_words());
}

// (nodes, request, rows of [low, high, available | reusable << 1]) -> family
Napi::Value device_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  DeviceHintsRequest request;
  request.nodes = to_node_count(info[0]);
  request.count = to_int(info[1], "the request");
  std::span<const uint32_t> words = to_words(info[2], "the devices");
  if (request.count < 1 || words.size() % 3 != 0) {
    throw Napi::RangeError::New(env, "hints are for at least one device, and three words describe each");
  }
  for (; !words.empty(); words = words.subspan(3)) {
    if (words[2] > 3)
      throw Napi::RangeError::New(env, "a device is available (1), reusable (2), both or neither");
    request.devices.push_back(
        {to_mask(env, words[0], words[1], request.nodes), (words[2] & 1) != 0, (words[2] & 2) != 0});
  }
  return from_words(env, device_hints(request).to_words());
}

Napi::Value whole_cores_binding(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), whole_cores(to_topology(info[0]), to_id_set<CpuTag>(info[1])));
}

// (words, nodes) -> whether they are a family of hints of so many nodes
Napi::Value is_hint_family(const Napi::CallbackInfo& info) {
  std::optional<HintFamily> family = HintFamily::from_words(to_words(info[0], "a family of hints"));
  return Napi::Boolean::New(info.Env(), family && family->nodes == to_int(info[1], "the number of nodes"));
}

// (families, nodes, policy, distances or undefined) -> [low, high, any | preferred << 1 | admitted << 2 |
// exact << 3]
Napi::Value merge_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsArray()) throw Napi::TypeError::New(env, "the families must be an array");
  auto array = info[0].As<Napi::Array>();
  MergeOptions options;
  options.nodes = to_int(info[1], "the number of nodes");
  int policy = to_int(info[2], "the policy");
  if (options.nodes < 1 || options.nodes > NodeMask::kBits || policy < 0 || policy > 3) {
    throw Napi::RangeError::New(env, "1 to 64 nodes, and a policy from 0 to 3");
  }
  options.policy = static_cast<TopologyPolicy>(policy);
  std::vector<HintFamily> families;
  for (uint32_t i = 0; i < array.Length(); i++) {
    families.push_back(to_family(array[i]));
    if (families.back().nodes != options.nodes) {
      throw Napi::RangeError::New(env, "a family of hints is of another number of nodes");
    }
  }
  // Last, since reading the array above can run JavaScript.
  if (!info[3].IsUndefined()) {
    options.distances = to_words(info[3], "the distances");
    if (options.distances.size() != static_cast<size_t>(options.nodes) * options.nodes) {
      throw Napi::RangeError::New(env, "distances need a row and a column for each node");
    }
  }
  MergedHint merged = merge_hints(families, options);
  uint32_t flags = (merged.any ? 1u : 0u) | (merged.preferred ? 2u : 0u) | (merged.admitted ? 4u : 0u) |
                   (merged.exact ? 8u : 0u);
  uint32_t words[] = {static_cast<uint32_t>(merged.mask.bits()),
                      static_cast<uint32_t>(merged.mask.bits() >> 32), flags};
  return from_words(env, words);
}

}  // namespace

void export_hints(Napi::Env env, Napi::Object exports) {
  exports["cpuHints"] = Napi::Function::New(env, cpu_hints_binding);
  exports["memoryHints"] = Napi::Function::New(env, memory_hints_binding);
  exports["deviceHints"] = Napi::Function::New(env, device_hints_binding);
  exports["wholeCores"] = Napi::Function::New(env, whole_cores_binding);
  exports["isHintFamily"] = Napi::Function::New(env, is_hint_family);
  exports["mergeHints"] = Napi::Function::New(env, merge_hints_binding);
}

}  // namespace numalign::addon
