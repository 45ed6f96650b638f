// Bindings of the topology hints and their merge. A family of hints crosses as the words of
// HintFamily::to_words() in a Uint32Array.
#include <algorithm>

#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/topology_binding.h"
#include "core/cpu_hints.h"
#include "core/hint_merger.h"

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
  exports["wholeCores"] = Napi::Function::New(env, whole_cores_binding);
  exports["isHintFamily"] = Napi::Function::New(env, is_hint_family);
  exports["mergeHints"] = Napi::Function::New(env, merge_hints_binding);
}

}  // namespace numalign::addon
