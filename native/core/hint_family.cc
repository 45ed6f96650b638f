#include "core/hint_family.h"

#include <algorithm>
#include <array>

namespace numalign {
namespace {

enum Form : uint32_t { kList, kBits, kLinear };
constexpr uint32_t kAnyPreferred = 1 << 8;
constexpr uint32_t kAnyOther = 1 << 9;
constexpr uint32_t kApproximate = 1 << 10;

// Keeps sums exact, even as doubles.
constexpr uint64_t kMostInNeed = (uint64_t{1} << 53) - 1;

class Writer {
 public:
  explicit Writer(std::vector<uint32_t>& words) : words_(words) {}

  void word(uint32_t value) { words_.push_back(value); }
  void wide(uint64_t value) {
    word(static_cast<uint32_t>(value));
    word(static_cast<uint32_t>(value >> 32));
  }

 private:
  std::vector<uint32_t>& words_;
};

// Reads past the end as zero, and remembers it.
class Reader {
 public:
  explicit Reader(std::span<const uint32_t> words) : words_(words) {}

  uint32_t word() {
    if (at_ < words_.size()) return words_[at_++];
    failed_ = true;
    return 0;
  }
  uint64_t wide() {
    uint64_t low = word();
    return low | uint64_t{word()} << 32;
  }
  size_t left() const { return words_.size() - at_; }
  bool at_end() const { return !failed_ && left() == 0; }

 private:
  std::span<const uint32_t> words_;
  size_t at_ = 0;
  bool failed_ = false;
};

size_t words32(int nodes) { return nodes <= 5 ? 1 : size_t{1} << (nodes - 5); }

void write_bits(Writer& writer, std::span<const uint64_t> bits, int nodes) {
  for (size_t i = 0; i < words32(nodes); i++) writer.word(static_cast<uint32_t>(bits[i / 2] >> (i % 2 * 32)));
}

void read_bits(Reader& reader, int nodes, SmallWords& bits) {
  bits.resize(HintBits::bit_words(nodes));
  for (uint64_t& word : bits) word = nodes <= 5 ? reader.word() : reader.wide();
}

void write_list(Writer& writer, const HintList& list) {
  for (const ListedHint& hint : list) {
    writer.wide(hint.mask.bits());
    writer.word(hint.preferred ? 1 : 0);
  }
}

// Reads each of the three forms in place. Returns false for a malformed one.
bool read_list(Reader& reader, int nodes, uint32_t count, HintList& list) {
  if (reader.left() != size_t{count} * 3) return false;
  list.resize(count);
  for (ListedHint& hint : list) {
    hint.mask = NodeMask(reader.wide());
    hint.preferred = reader.word() != 0;
    if (hint.mask.empty() || (hint.mask.bits() & ~all_nodes(nodes)) != 0) return false;
  }
  return true;
}

bool read_hint_bits(Reader& reader, int nodes, HintBits& bits) {
  if (nodes > kEnumeratedNodes) return false;
  read_bits(reader, nodes, bits.offered);
  read_bits(reader, nodes, bits.preferred);
  uint64_t valid = nodes < 6 ? all_nodes(1 << nodes) : ~uint64_t{0};
  uint64_t any = 0;
  for (size_t i = 0; i < bits.offered.size(); i++) {
    if ((bits.preferred[i] & ~bits.offered[i]) != 0 || (bits.offered[i] & ~valid) != 0) return false;
    any |= bits.offered[i];
  }
  // The empty mask is not a hint. A family without hints is an empty list.
  return !HintBits::test(bits.offered, 0) && any != 0;
}

std::optional<Need> read_need(Reader& reader, int nodes, NodeMask domain) {
  Need need{reader.wide(), {}};
  uint64_t sum = 0;
  for (int node = 0; node < nodes; node++) {
    uint64_t amount = reader.wide();
    if (amount > kMostInNeed - sum || (amount != 0 && !domain.contains(node))) return std::nullopt;
    sum += amount;
    need.free.push_back(amount);
  }
  return need.request > 0 ? std::optional(std::move(need)) : std::nullopt;
}

bool read_linear(Reader& reader, int nodes, LinearHints& linear) {
  uint32_t needs = reader.word();
  uint32_t listed = reader.word();
  linear.must = NodeMask(reader.wide());
  linear.domain = NodeMask(reader.wide());
  linear.narrowest = static_cast<int>(reader.word());
  linear.packages_needed = static_cast<int>(reader.word());
  bool is_right = needs > 0 && (linear.must.bits() & ~linear.domain.bits()) == 0 &&
                  (linear.domain.bits() & ~all_nodes(nodes)) == 0 && linear.narrowest >= 1 &&
                  linear.narrowest <= nodes && linear.packages_needed >= 0 && linear.packages_needed <= 64;
  if (!is_right) return false;
  for (uint32_t i = 0; i < needs; i++) {
    std::optional<Need> need = read_need(reader, nodes, linear.domain);
    if (!need) return false;  // also past the end, where the request is 0
    linear.needs.push_back(*std::move(need));
  }
  for (int i = 0; linear.packages_needed > 0 && i < nodes; i++) linear.packages.push_back(reader.wide());
  if (!read_list(reader, nodes, listed, linear.listed)) return false;
  auto not_below = [](const ListedHint& a, const ListedHint& b) { return a.mask.bits() >= b.mask.bits(); };
  return std::ranges::adjacent_find(linear.listed, not_below) == linear.listed.end() && !linear.is_empty();
}

// The masks that meet a need, 64 at a time: those that differ only in the lowest six nodes.
class NeedInWords {
 public:
  explicit NeedInWords(const Need& need) : need_(need), masks_(HintBits::low_masks(need.free.size())) {
    low_[0] = 0;
    for (uint64_t low = 1; low < masks_; low++) {
      low_[low] = low_[low & (low - 1)] + need.free[static_cast<size_t>(std::countr_zero(low))];
    }
  }

  // The word of the masks whose higher nodes are `high`.
  uint64_t word(uint64_t high) const {
    uint64_t sum = 0;
    for_each_node(high, [&](int node) { sum += need_.free[node + 6]; });
    if (sum >= need_.request) return ~uint64_t{0};
    uint64_t missing = need_.request - sum;
    if (low_[masks_ - 1] < missing) return 0;
    uint64_t word = 0;
    for (size_t low = 0; low < masks_; low++) word |= uint64_t{low_[low] >= missing} << low;
    return word;
  }

 private:
  const Need& need_;
  size_t masks_;
  std::array<uint64_t, 64> low_;  // the sums of the first masks_
};

}  // namespace

int HintBits::narrowest(std::span<const uint64_t> bits) {
  int least = NodeMask::kBits + 1;
  for (size_t i = 0; i < bits.size(); i++) {
    if (bits[i] == 0) continue;
    int low = 0;
    while ((bits[i] & kLowOfSize[low]) == 0) low++;
    least = std::min(least, count_ones(i) + low);
  }
  return least;
}

void HintBits::prefer_size(int size) {
  preferred = SmallWords(offered.size());
  for (size_t i = 0; i < offered.size(); i++) {
    int low = size - count_ones(i);
    if (low >= 0 && low <= 6) preferred[i] = offered[i] & kLowOfSize[low];
  }
}

uint64_t Need::free_in(NodeMask mask) const {
  uint64_t sum = 0;
  for_each_node(mask.bits(), [&](int node) { sum += free[node]; });
  return sum;
}

bool LinearHints::offers_linearly(NodeMask mask) const {
  return (mask.bits() & ~domain.bits()) == 0 && (must.bits() & ~mask.bits()) == 0 &&
         std::ranges::all_of(needs, [&](const Need& need) { return need.is_met_by(mask); });
}

bool LinearHints::prefers_linearly(NodeMask mask) const {
  if (mask.size() == narrowest) return true;
  if (packages_needed == 0) return false;
  uint64_t spanned = 0;
  for_each_node(mask.bits(), [&](int node) { spanned |= packages[node]; });
  return count_ones(spanned) == packages_needed;
}

const ListedHint* LinearHints::find_listed(NodeMask mask) const {
  auto found =
      std::ranges::lower_bound(listed, mask.bits(), {}, [](const ListedHint& h) { return h.mask.bits(); });
  return found != listed.end() && found->mask == mask ? &*found : nullptr;
}

bool LinearHints::offers(NodeMask mask) const { return find_listed(mask) || offers_linearly(mask); }

bool LinearHints::prefers(NodeMask mask) const {
  if (const ListedHint* hint = find_listed(mask)) return hint->preferred;
  return offers_linearly(mask) && prefers_linearly(mask);
}

HintBits LinearHints::enumerate(int nodes) const {
  assert(nodes <= kEnumeratedNodes);
  HintBits bits;
  bits.offered = SmallWords(HintBits::bit_words(nodes));
  std::vector<NeedInWords> in_words(needs.begin(), needs.end());
  uint64_t allowed = 0;  // among the lowest six nodes
  for (uint64_t low = 0; low < HintBits::low_masks(static_cast<size_t>(nodes)); low++) {
    bool is_in = (low & ~domain.bits()) == 0 && (must.bits() & 63 & ~low) == 0;
    allowed |= uint64_t{is_in} << low;
  }
  for (uint64_t high = 0; high < bits.offered.size(); high++) {
    if ((high & ~(domain.bits() >> 6)) != 0 || (must.bits() >> 6 & ~high) != 0) continue;
    uint64_t offered = allowed;
    for (const NeedInWords& need : in_words) offered &= need.word(high);
    bits.offered[high] = offered;
  }
  prefer_linearly(bits);
  for (const ListedHint& hint : listed) {
    uint64_t bit = uint64_t{1} << (hint.mask.bits() % 64);
    bits.offered[hint.mask.bits() / 64] |= bit;
    bits.preferred[hint.mask.bits() / 64] &= ~bit;
    if (hint.preferred) bits.preferred[hint.mask.bits() / 64] |= bit;
  }
  return bits;
}

void LinearHints::prefer_linearly(HintBits& bits) const {
  bits.prefer_size(narrowest);
  if (packages_needed > 0) {
    for (size_t high = 0; high < bits.offered.size(); high++) {
      for_each_node(bits.offered[high], [&](int low) {
        uint64_t mask = high << 6 | static_cast<uint64_t>(low);
        if (prefers_linearly(NodeMask(mask))) HintBits::set(bits.preferred, mask);
      });
    }
  }
}

bool HintFamily::offers(NodeMask mask) const {
  if (auto* bits = std::get_if<HintBits>(&masks)) return HintBits::test(bits->offered, mask.bits());
  if (auto* linear = std::get_if<LinearHints>(&masks)) return linear->offers(mask);
  return std::ranges::any_of(std::get<HintList>(masks), [&](const ListedHint& h) { return h.mask == mask; });
}

bool HintFamily::prefers(NodeMask mask) const {
  if (auto* bits = std::get_if<HintBits>(&masks)) return HintBits::test(bits->preferred, mask.bits());
  if (auto* linear = std::get_if<LinearHints>(&masks)) return linear->prefers(mask);
  return std::ranges::any_of(std::get<HintList>(masks),
                             [&](const ListedHint& h) { return h.mask == mask && h.preferred; });
}

std::vector<uint32_t> HintFamily::to_words() const {
  std::vector<uint32_t> words;
  append_words(words);
  return words;
}

void HintFamily::append_words(std::vector<uint32_t>& words) const {
  Writer writer(words);
  uint32_t flags =
      (any_preferred ? kAnyPreferred : 0) | (any_other ? kAnyOther : 0) | (approximate ? kApproximate : 0);
  writer.word(static_cast<uint32_t>(masks.index()) | flags);
  writer.word(static_cast<uint32_t>(nodes));
  if (auto* list = std::get_if<HintList>(&masks)) {
    writer.word(static_cast<uint32_t>(list->size()));
    write_list(writer, *list);
  } else if (auto* bits = std::get_if<HintBits>(&masks)) {
    write_bits(writer, bits->offered, nodes);
    write_bits(writer, bits->preferred, nodes);
  } else {
    const LinearHints& linear = std::get<LinearHints>(masks);
    writer.word(static_cast<uint32_t>(linear.needs.size()));
    writer.word(static_cast<uint32_t>(linear.listed.size()));
    writer.wide(linear.must.bits());
    writer.wide(linear.domain.bits());
    writer.word(static_cast<uint32_t>(linear.narrowest));
    writer.word(static_cast<uint32_t>(linear.packages_needed));
    for (const Need& need : linear.needs) {
      writer.wide(need.request);
      for (uint64_t amount : need.free) writer.wide(amount);
    }
    for (uint64_t packages : linear.packages) writer.wide(packages);
    write_list(writer, linear.listed);
  }
}

bool HintFamily::read(std::span<const uint32_t> words) {
  Reader reader(words);
  uint32_t head = reader.word();
  uint32_t count = reader.word();
  uint32_t form = head & 0xff;
  uint32_t allowed = form == kLinear ? kApproximate : kAnyPreferred | kAnyOther;
  if (count < 1 || count > NodeMask::kBits || (head & ~(0xffu | allowed)) != 0) return false;
  nodes = static_cast<int>(count);
  any_preferred = (head & kAnyPreferred) != 0;
  any_other = (head & kAnyOther) != 0;
  approximate = (head & kApproximate) != 0;
  bool is_read = false;
  switch (form) {
    case kList:
      is_read = read_list(reader, nodes, reader.word(), masks.emplace<HintList>());
      break;
    case kBits:
      is_read = read_hint_bits(reader, nodes, masks.emplace<HintBits>());
      break;
    case kLinear:
      is_read = read_linear(reader, nodes, masks.emplace<LinearHints>());
      break;
    default:
      break;
  }
  return is_read && reader.at_end();
}

std::optional<HintFamily> HintFamily::from_words(std::span<const uint32_t> words) {
  std::optional<HintFamily> family(std::in_place);
  if (!family->read(words)) family.reset();
  return family;
}

HintFamily family_of(LinearHints linear, int nodes, int enumerated) {
  HintFamily family;
  family.nodes = nodes;
  if (linear.is_empty()) return family;
  if (nodes <= enumerated) {
    family.masks = linear.enumerate(nodes);
  } else {
    family.masks = std::move(linear);
  }
  return family;
}

}  // namespace numalign
