// Bindings of the topology hints and their merge. Sets, lists and amounts are on the wire. A family of
// hints returns as the words of HintFamily::to_words().
#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/topology_binding.h"
#include "core/hint_listing.h"
#include "core/placement_question.h"

namespace numalign::addon {
namespace {

// (topology) -> family
Napi::Value cpu_hints_binding(const Napi::CallbackInfo& info) {
  const Topology& topology = to_topology(info[0]);
  WireReader wire = wire_of(info.Env());
  const CpuHintsRequest request = read_cpu_hints(wire, topology);
  check(info.Env(), wire);
  return to_wire(info.Env(), cpu_hints(topology, request).to_words());
}

// () -> family
Napi::Value memory_hints_binding(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  const MemoryHintsRequest request = read_memory_hints(wire, wire.node_count());
  check(info.Env(), wire);
  return to_wire(info.Env(), memory_hints(request).to_words());
}

// () -> family
Napi::Value device_hints_binding(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  const DeviceHintsRequest request = read_device_hints(wire, wire.node_count());
  check(info.Env(), wire);
  return to_wire(info.Env(), device_hints(request).to_words());
}

// (topology) -> CPUs
Napi::Value whole_cores_binding(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  const CpuSet cpus = wire.cpus();
  check(info.Env(), wire);
  return to_wire(info.Env(), whole_cores(to_topology(info[0]), cpus));
}

// () -> true if the list is a family of hints for this many nodes
Napi::Value is_hint_family(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  HintFamily family;
  wire.family(family);
  const int nodes = wire.number();
  return Napi::Boolean::New(info.Env(), wire.failure() == nullptr && family.nodes == nodes);
}

// () -> 1 if whole, else 0; then for each hint its mask, and whether it is preferred
Napi::Value list_hints_binding(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  HintFamily family;
  wire.family(family);
  const NodeMask after = wire.mask(family.nodes);
  const int limit = wire.number();
  const bool is_bounded = wire.flag();
  wire.require(limit >= 0, "a limit is not below 0");
  check(info.Env(), wire);
  const HintListing listing =
      list_hints(family, after, static_cast<size_t>(limit), is_bounded ? kStepsToFirst : UINT64_MAX);
  std::vector<uint32_t> words;
  WireWriter answer(words);
  answer.word(listing.is_whole ? 1 : 0);
  for (const ListedHint& hint : listing.hints) {
    answer.mask(hint.mask);
    answer.word(hint.preferred ? 1 : 0);
  }
  return to_wire(info.Env(), words);
}

// () -> family
Napi::Value without_preferred_binding(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  HintFamily family;
  wire.family(family);
  std::vector<NodeMask> masks;
  for (auto words = wire.list(); words.size() >= 2; words = words.subspan(2))
    masks.push_back(wire.mask_of_words(words[0], words[1], family.nodes));
  check(info.Env(), wire);
  return to_wire(info.Env(), without_preferred(std::move(family), masks).to_words());
}

// (topology, or undefined without a question about CPUs) -> what answer_merge() or answer_placement()
// writes
template <auto answer_question>
Napi::Value ask(const Napi::CallbackInfo& info) {
  WireReader wire = wire_of(info.Env());
  // Kept, so that its memory is allocated once.
  std::vector<uint32_t>& answer = Environment::of(info.Env()).answer;
  answer.clear();
  answer_question(wire, info[0].IsUndefined() ? nullptr : &to_topology(info[0]), WireWriter(answer));
  check(info.Env(), wire);
  return to_wire(info.Env(), answer);
}

}  // namespace

void export_hints(Napi::Env env, Napi::Object exports) {
  exports["cpuHints"] = Napi::Function::New<cpu_hints_binding>(env);
  exports["memoryHints"] = Napi::Function::New<memory_hints_binding>(env);
  exports["deviceHints"] = Napi::Function::New<device_hints_binding>(env);
  exports["wholeCores"] = Napi::Function::New<whole_cores_binding>(env);
  exports["isHintFamily"] = Napi::Function::New<is_hint_family>(env);
  exports["listHints"] = Napi::Function::New<list_hints_binding>(env);
  exports["withoutPreferred"] = Napi::Function::New<without_preferred_binding>(env);
  exports["mergeHints"] = Napi::Function::New<ask<answer_merge>>(env);
  exports["decide"] = Napi::Function::New<ask<answer_placement>>(env);
}

}  // namespace numalign::addon
