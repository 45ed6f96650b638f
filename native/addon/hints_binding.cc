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
#include "core/joint_choice.h"
#include "core/memory_hints.h"

namespace numalign::addon {
namespace {

void read_family(Napi::Env env, std::span<const uint32_t> words, HintFamily& family) {
  if (!family.read(words)) throw Napi::TypeError::New(env, "these words are not a family of hints");
}

HintFamily to_family(Napi::Env env, std::span<const uint32_t> words) {
  HintFamily family;
  read_family(env, words, family);
  return family;
}

// For each set and list, an argument says how many words are on the wire, in the order of the
// arguments.

void check(const Topology& topology, const CpuHintsRequest& request, Napi::Env env) {
  if (request.count >= 1 && topology.spec().nodes.size() <= NodeMask::kBits) return;
  throw Napi::RangeError::New(env, "hints are for at least one CPU and at most 64 NUMA nodes");
}

CpuHintsRequest to_cpu_hints_request(CpuSet available, CpuSet reusable, int count, uint32_t flags,
                                     std::span<const uint32_t> claims) {
  return {.available = std::move(available),
          .reusable = std::move(reusable),
          .count = count,
          .align_by_socket = (flags & 1) != 0,
          .whole_cores = (flags & 2) != 0,
          .keeps_reusable = (flags & 4) != 0,
          .claims = to_core_claims(claims)};
}

// (topology, available, reusable, count, alignBySocket | wholeCores << 1 | keepsReusable << 2,
// claims) -> family
Napi::Value cpu_hints_binding(const Napi::CallbackInfo& info) {
  const Topology& topology = to_topology(info[0]);
  WireReader wire(info.Env());
  CpuSet available = wire.id_set<CpuTag>(info[1]);
  CpuSet reusable = wire.id_set<CpuTag>(info[2]);
  CpuHintsRequest request =
      to_cpu_hints_request(std::move(available), std::move(reusable), to_int(info[3], "the count"),
                           static_cast<uint32_t>(to_int(info[4], "the flags")), wire.words(info[5]));
  check(topology, request, info.Env());
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
    throw Napi::RangeError::New(env, "a mask has nodes that the machine does not have");
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
  // One for each node.
  SmallWords by_node(int nodes) {
    SmallWords amounts(static_cast<size_t>(nodes));
    uint64_t sum = 0;
    for (uint64_t& amount : amounts) sum += amount = next();
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

// REQUIRES amounts, groups and words of a mask for all nodes and types.
MemoryHintsRequest to_memory_request(Napi::Env env, int nodes, int types,
                                     std::span<const double> amount_words,
                                     std::span<const double> reusable_words, std::span<const uint32_t> groups,
                                     std::span<const uint32_t> must) {
  MemoryHintsRequest request;
  request.nodes = nodes;
  const size_t n = static_cast<size_t>(nodes);
  Amounts amounts(env, amount_words);
  Amounts reusable(env, reusable_words);
  const size_t row = static_cast<size_t>(std::max(types, 0)) + 2;
  if (types < 1 || amounts.left() != (row - 2) * (1 + 2 * n) || groups.size() != 2 * n ||
      reusable.left() % row != 0) {
    throw Napi::RangeError::New(env, "at least one type, and every array as long as nodes and types need it");
  }
  request.types.reserve(row - 2);
  for (int i = 0; i < types; i++) {
    MemoryType& type = request.types.emplace_back();
    type.request = amounts.next();
    if (type.request == 0) throw Napi::RangeError::New(env, "a request for memory is at least one byte");
    type.free = amounts.by_node(nodes);
    type.allocatable = amounts.by_node(nodes);
  }
  request.group.reserve(n);
  for (size_t node = 0; node < n; node++) {
    request.group.push_back(to_mask(env, groups[2 * node], groups[2 * node + 1], nodes));
  }
  while (reusable.left() > 0) {
    ReusableMemory& memory = request.reusable.emplace_back();
    uint32_t low = reusable.word();
    memory.mask = to_mask(env, low, reusable.word(), nodes);
    if (memory.mask.empty()) throw Napi::RangeError::New(env, "reusable memory needs at least one node");
    for (int i = 0; i < types; i++) memory.bytes.push_back(reusable.next());
  }
  if (must.size() != 2) throw Napi::RangeError::New(env, "a mask is two words");
  request.must = to_mask(env, must[0], must[1], nodes);
  return request;
}

// (nodes, types, for each type [request, free by node, allocatable by node], rows of [low, high,
// reusable bytes by type], groups by node (low, high each), must [low, high]) -> family
Napi::Value memory_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  WireReader wire(env);
  const int nodes = to_node_count(info[0]);
  const int types = to_int(info[1], "the number of types");
  std::span<const double> amounts = wire.amounts(info[2]);
  std::span<const double> reusable = wire.amounts(info[3]);
  std::span<const uint32_t> groups = wire.words(info[4]);
  std::span<const uint32_t> must = wire.words(info[5]);
  return to_wire(
      env, memory_hints(to_memory_request(env, nodes, types, amounts, reusable, groups, must)).to_words());
}

// `words`: rows of [low, high, available
// reusable << 1].
DeviceHintsRequest to_device_request(Napi::Env env, int nodes, int count, bool only_near_devices,
                                     std::span<const uint32_t> words) {
  DeviceHintsRequest request;
  request.only_near_devices = only_near_devices;
  request.nodes = nodes;
  request.count = count;
  if (request.count < 1 || words.size() % 3 != 0) {
    throw Napi::RangeError::New(env, "hints are for at least one device, described by three words each");
  }
  request.devices.reserve(words.size() / 3);
  for (; !words.empty(); words = words.subspan(3)) {
    if (words[2] > 3)
      throw Napi::RangeError::New(env, "a device is available (1), reusable (2), both or neither");
    request.devices.push_back(
        {to_mask(env, words[0], words[1], nodes), (words[2] & 1) != 0, (words[2] & 2) != 0});
  }
  return request;
}

// (nodes, request, onlyNearDevices, rows of [low, high, available | reusable << 1]) -> family
Napi::Value device_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const int nodes = to_node_count(info[0]);
  const int count = to_int(info[1], "the request");
  const bool only_near_devices = info[2].ToBoolean();
  DeviceHintsRequest request =
      to_device_request(env, nodes, count, only_near_devices, WireReader(env).words(info[3]));
  return to_wire(env, device_hints(request).to_words());
}

Napi::Value whole_cores_binding(const Napi::CallbackInfo& info) {
  return to_wire(info.Env(),
                 whole_cores(to_topology(info[0]), WireReader(info.Env()).id_set<CpuTag>(info[1])));
}

// (words, nodes) -> true if they are a family of hints for this many nodes
Napi::Value is_hint_family(const Napi::CallbackInfo& info) {
  std::optional<HintFamily> family = HintFamily::from_words(WireReader(info.Env()).words(info[0]));
  return Napi::Boolean::New(info.Env(), family && family->nodes == to_int(info[1], "the number of nodes"));
}

// (words, after [low, high], limit, true to limit the steps) -> [true if whole, then for each hint
// (low, high, preferred)]
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

// Reads the input of a merge off the wire.
class OfferReader {
 public:
  OfferReader(Napi::Env env, const Napi::Value& topology, int nodes)
      : env_(env),
        topology_(topology),
        nodes_(nodes),
        words_(Environment::of(env).words),
        amounts_(Environment::of(env).amounts) {}

  std::span<const uint32_t> take(size_t n) {
    if (n > words_.size()) throw_short();
    std::span<const uint32_t> taken = words_.first(n);
    words_ = words_.subspan(n);
    return taken;
  }
  uint32_t word() { return take(1).front(); }

  // A packed family: its length, its words.
  void family(HintFamily& family) {
    read_family(env_, take(word()), family);
    if (family.nodes != nodes_)
      throw Napi::RangeError::New(env_, "a family of hints has another number of nodes");
  }
  // Each has the arguments of the function for such hints alone. Sets and lists begin with their
  // length.
  HintFamily cpus() {
    std::span<const uint32_t> head = take(2);
    CpuSet available = id_set();
    CpuSet reusable = id_set();
    std::span<const uint32_t> claims = take(word());
    CpuHintsRequest request =
        to_cpu_hints_request(std::move(available), std::move(reusable), to_count(head[0]), head[1], claims);
    const Topology& topology = to_topology(topology_);
    check(topology, request, env_);
    if (static_cast<int>(topology.spec().nodes.size()) == nodes_) return cpu_hints(topology, request);
    throw Napi::RangeError::New(env_, "the topology has another number of nodes");
  }
  HintFamily memory(uint32_t& types) {
    types = word();
    std::span<const uint32_t> groups = take(word());
    std::span<const uint32_t> must = take(word());
    std::span<const double> amounts = take_amounts(word());
    std::span<const double> reusable = take_amounts(word());
    return memory_hints(to_memory_request(env_, nodes_, to_count(types), amounts, reusable, groups, must));
  }
  HintFamily devices() {
    const uint32_t count = word();
    const bool only_near_devices = word() != 0;
    return device_hints(to_device_request(env_, nodes_, to_count(count), only_near_devices, take(word())));
  }

 private:
  [[noreturn]] void throw_short() const { throw Napi::RangeError::New(env_, "the wire has fewer words"); }
  std::span<const double> take_amounts(size_t n) {
    if (n > amounts_.size()) throw_short();
    std::span<const double> taken = amounts_.first(n);
    amounts_ = amounts_.subspan(n);
    return taken;
  }
  CpuSet id_set() { return to_cpu_set(env_, take(word())); }
  static int to_count(uint32_t word) { return static_cast<int>(std::min<uint32_t>(word, INT32_MAX)); }

  Napi::Env env_;
  Napi::Value topology_;
  int nodes_;
  std::span<const uint32_t> words_;
  std::span<const double> amounts_;
};

// The words of the merge's result, before those of families.
constexpr size_t kMerged = 6;
enum Kind : uint32_t { kFamily, kCpus, kMemory, kDevices };

// (topology, or undefined without a question about CPUs). On the wire: the number of families and
// questions, nodes, the policy, the number of distances and of rooms; the distances; for a joint
// choice, [low, high] of the allowed nodes, and the rooms; for each family or question, its kind
// and the input of its reader. Returns low, high, any
// preferred << 1
// admitted << 2
// exact << 3; the counts of a joint choice: sets, nearest, tightest; for each question the length
// and the words of its family. One call for all, because each call takes as long as the hints of a
// resource, or their merge.
Napi::Value merge_hints_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::span<const uint32_t> wire = Environment::of(env).words;
  if (wire.size() < 5 || wire[1] < 1 || wire[1] > NodeMask::kBits || wire[2] > 3) {
    throw Napi::RangeError::New(env, "1 to 64 nodes, and a policy from 0 to 3");
  }
  OfferReader reader(env, info[0], static_cast<int>(wire[1]));
  std::span<const uint32_t> head = reader.take(5);
  const size_t count = head[0], distances = head[3], rooms = head[4];
  MergeOptions options;
  options.nodes = static_cast<int>(head[1]);
  options.policy = static_cast<TopologyPolicy>(head[2]);
  if (distances != 0 && distances != size_t{head[1]} * head[1]) {
    throw Napi::RangeError::New(env, "a distance is needed for each pair of nodes");
  }
  options.distances = reader.take(distances);
  if (rooms != 0 && rooms != head[1]) throw Napi::RangeError::New(env, "a room is needed for each node");
  JointOptions joint;
  if (rooms != 0) {
    const uint32_t low = reader.word();
    joint.within = to_mask(env, low, reader.word(), options.nodes);
    joint.rooms = reader.take(rooms);
  }
  joint.merge = options;
  std::vector<HintFamily> families;
  families.reserve(std::min(wire.size(), count) + 1);
  // The answer to questions, if there are any. Kept, so that its memory is allocated once.
  std::vector<uint32_t>& answer = Environment::of(env).answer;
  answer.clear();
  for (size_t i = 0; i < count; i++) {
    const uint32_t kind = reader.word();
    if (kind == kFamily) {
      reader.family(families.emplace_back());
      continue;
    }
    if (kind > kDevices) throw Napi::RangeError::New(env, "unknown kind of question");
    uint32_t times = 1;
    families.push_back(kind == kCpus     ? reader.cpus()
                       : kind == kMemory ? reader.memory(times)
                                         : reader.devices());
    if (answer.empty()) answer.resize(kMerged);
    const size_t at = answer.size();
    answer.push_back(0);
    families.back().append_words(answer);
    answer[at] = static_cast<uint32_t>(answer.size() - at - 1);
    // Each type of memory counts as a resource, with the same hints.
    for (; times > 1; times--) families.push_back(HintFamily(families.back()));
  }
  const JointChoice choice =
      rooms != 0 ? choose_jointly(families, joint) : JointChoice{.merged = merge_hints(families, options)};
  const MergedHint& merged = choice.merged;
  const std::span<uint32_t> result = answer.empty() ? Environment::of(env).words : std::span(answer);
  result[0] = static_cast<uint32_t>(merged.mask.bits());
  result[1] = static_cast<uint32_t>(merged.mask.bits() >> 32);
  result[2] = (merged.any ? 1u : 0u) | (merged.preferred ? 2u : 0u) | (merged.admitted ? 4u : 0u) |
              (merged.exact ? 8u : 0u);
  result[3] = choice.sets;
  result[4] = choice.nearest;
  result[5] = choice.tightest;
  return answer.empty() ? Napi::Value() : to_wire(env, answer);
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
