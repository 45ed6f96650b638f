#include "core/wire.h"

#include <algorithm>
#include <cmath>

#include "core/set_words.h"

namespace numalign {
namespace {

constexpr double kAmountLimit = 9007199254740992.0;  // 2^53

// Reads a list of amounts, each an integer below 2^53.
class Amounts {
 public:
  explicit Amounts(WireReader& wire) : wire_(wire), left_(wire.amounts()) {}

  size_t left() const { return left_.size(); }
  // REQUIRES: some are left.
  uint64_t next() {
    const double amount = left_.front();
    left_ = left_.subspan(1);
    const bool is_whole = amount >= 0 && amount < kAmountLimit && amount == std::floor(amount);
    wire_.require(is_whole, "amounts are integers from 0 to 2^53 - 1");
    return is_whole ? static_cast<uint64_t>(amount) : 0;
  }
  // One for each node.
  SmallWords by_node(int nodes) {
    SmallWords amounts(static_cast<size_t>(nodes));
    uint64_t sum = 0;
    for (uint64_t& amount : amounts) sum += amount = next();
    wire_.require(sum < static_cast<uint64_t>(kAmountLimit),
                  "the amounts of all nodes together are at most 2^53 - 1");
    return amounts;
  }
  uint32_t word() {
    const uint64_t amount = next();
    wire_.require(amount <= UINT32_MAX, "half a mask is a word of 32 bits");
    return static_cast<uint32_t>(amount);
  }

 private:
  WireReader& wire_;
  std::span<const double> left_;
};

}  // namespace

void WireReader::fail(const char* why) {
  if (failure_ == nullptr) failure_ = why;
  words_ = {};
  amounts_ = {};
}

CpuSet WireReader::cpus() {
  std::optional<CpuSet> cpus = set_of_words<CpuTag>(list());
  require(cpus.has_value(), "a set has ids above its maximum");
  return cpus ? *std::move(cpus) : CpuSet();
}

int WireReader::node_count() {
  const int nodes = number();
  const bool is_right = nodes >= 1 && nodes <= NodeMask::kBits;
  require(is_right, "hints are for 1 to 64 NUMA nodes");
  return is_right ? nodes : 1;
}

NodeMask WireReader::mask_of_words(uint32_t low, uint32_t high, int nodes) {
  const uint64_t mask = low | uint64_t{high} << 32;
  require((mask & ~all_nodes(nodes)) == 0, "a mask has nodes that the machine does not have");
  return NodeMask(mask);
}

NodeMask WireReader::mask(int nodes) {
  std::span<const uint32_t> halves = list();
  require(halves.empty() || halves.size() == 2, "a mask is two words, or none");
  return halves.size() == 2 ? mask_of_words(halves[0], halves[1], nodes) : NodeMask();
}

std::vector<CoreClaim> WireReader::core_claims() {
  constexpr uint32_t kMost = CpuSet::kMaxId + 1;
  std::vector<CoreClaim> claims;
  for (uint32_t word : list()) {
    if (word > 1) claims.push_back({static_cast<int>(std::min(word >> 1, kMost)), (word & 1) != 0});
  }
  return claims;
}

BestFitQuestion read_best_fit(WireReader& wire) {
  BestFitQuestion question;
  question.available = wire.cpus();
  question.count = wire.number();
  question.near.near = wire.cpus();
  question.near.nodes = wire.number();
  BestFitOptions& options = question.options;
  options.cpu_group_size = wire.number();
  const uint32_t flags = wire.word();
  int bit = 0;
  for (bool* flag :
       {&question.near.only_most, &question.near.leaves_rest, &question.near.keeps_nodes,
        &question.near.fewest_l3, &options.spread, &options.align_by_l3, &options.distribute_across_numa,
        &options.whole_cores, &options.any_rest_in_l3, &options.keep_package})
    *flag = (flags >> bit++ & 1) != 0;
  wire.require(flags >> bit == 0, "unknown flags of a fit");
  options.later = wire.core_claims();
  wire.require(question.count >= 0 && question.near.nodes >= 0 && options.cpu_group_size >= 1,
               "the count must not be negative, the group size at least 1");
  return question;
}

CpuHintsRequest read_cpu_hints(WireReader& wire, const Topology& topology) {
  CpuHintsRequest request;
  request.available = wire.cpus();
  request.reusable = wire.cpus();
  request.count = wire.number();
  request.align_by_socket = wire.flag();
  request.whole_cores = wire.flag();
  request.keeps_reusable = wire.flag();
  request.claims = wire.core_claims();
  wire.require(request.count >= 1 && topology.spec().nodes.size() <= NodeMask::kBits,
               "hints are for at least one CPU and at most 64 NUMA nodes");
  return request;
}

MemoryHintsRequest read_memory_hints(WireReader& wire, int nodes) {
  MemoryHintsRequest request;
  request.nodes = nodes;
  const size_t n = static_cast<size_t>(nodes);
  const size_t types = static_cast<size_t>(std::max(wire.number(), 0));
  Amounts amounts(wire);
  Amounts reusable(wire);
  std::span<const uint32_t> groups = wire.list();
  request.must = wire.mask(nodes);
  request.closed = wire.mask(nodes);
  const size_t row = types + 2;
  wire.require(types >= 1 && amounts.left() == types * (1 + 2 * n) &&
                   (groups.empty() || groups.size() == 2 * n) && reusable.left() % row == 0,
               "at least one type, and every array as long as nodes and types need it");
  if (wire.failure() != nullptr) return request;
  request.types.resize(types);
  for (MemoryType& type : request.types) {
    type.request = amounts.next();
    wire.require(type.request > 0, "a request for memory is at least one byte");
    type.free = amounts.by_node(nodes);
    type.allocatable = amounts.by_node(nodes);
  }
  request.group.resize(n);
  for (size_t node = 0; 2 * node < groups.size(); node++) {
    request.group[node] = wire.mask_of_words(groups[2 * node], groups[2 * node + 1], nodes);
  }
  while (reusable.left() > 0) {
    ReusableMemory& memory = request.reusable.emplace_back();
    const uint32_t low = reusable.word();
    memory.mask = wire.mask_of_words(low, reusable.word(), nodes);
    wire.require(!memory.mask.empty(), "reusable memory needs at least one node");
    memory.bytes.reserve(types);
    for (size_t i = 0; i < types; i++) memory.bytes.push_back(reusable.next());
  }
  return request;
}

DeviceHintsRequest read_device_hints(WireReader& wire, int nodes) {
  DeviceHintsRequest request;
  request.nodes = nodes;
  request.count = wire.number();
  request.only_near_devices = wire.flag();
  std::span<const uint32_t> rows = wire.list();
  wire.require(request.count >= 1 && rows.size() % 3 == 0,
               "hints are for at least one device, described by three words each");
  request.devices.reserve(rows.size() / 3);
  for (; rows.size() >= 3; rows = rows.subspan(3)) {
    wire.require(rows[2] <= 3, "a device is available (1), reusable (2), both or neither");
    request.devices.push_back(
        {wire.mask_of_words(rows[0], rows[1], nodes), (rows[2] & 1) != 0, (rows[2] & 2) != 0});
  }
  return request;
}

void WireWriter::mask(NodeMask mask) {
  words_.push_back(static_cast<uint32_t>(mask.bits()));
  words_.push_back(static_cast<uint32_t>(mask.bits() >> 32));
}

void WireWriter::cpus(const CpuSet& cpus) {
  const size_t n = word_count(cpus);
  words_.push_back(static_cast<uint32_t>(n));
  words_.resize(words_.size() + n);
  copy_words(cpus, words_.data() + words_.size() - n);
}

void WireWriter::family(const HintFamily& family) {
  const size_t at = words_.size();
  words_.push_back(0);
  family.append_words(words_);
  words_[at] = static_cast<uint32_t>(words_.size() - at - 1);
}

}  // namespace numalign
