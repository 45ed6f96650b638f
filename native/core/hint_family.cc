#include "core/hint_family.h"

#include <algorithm>
#include <numeric>

namespace numalign {
namespace {

enum Form : uint32_t { kList, kBits, kLinear };
constexpr uint32_t kAnyPreferred = 1 << 8;
constexpr uint32_t kAnyOther = 1 << 9;

class Writer {
 public:
  void word(uint32_t value) { words.push_back(value); }
  void wide(uint64_t value) {
    word(static_cast<uint32_t>(value));
    word(static_cast<uint32_t>(value >> 32));
  }

  std::vector<uint32_t> words;
};

// Reads past the end as zero and remembers it.
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

std::vector<uint64_t> read_bits(Reader& reader, int nodes) {
  std::vector<uint64_t> bits(HintBits::bit_words(nodes));
  for (size_t i = 0; i < words32(nodes); i++) bits[i / 2] |= uint64_t{reader.word()} << (i % 2 * 32);
  return bits;
}

std::optional<HintList> read_list(Reader& reader, int nodes) {
  uint32_t count = reader.word();
  if (reader.left() != size_t{count} * 3) return std::nullopt;
  HintList list(count);
  for (ListedHint& hint : list) {
    hint.mask = NodeMask(reader.wide());
    hint.preferred = reader.word() != 0;
    if (hint.mask.empty() || (hint.mask.bits() & ~all_nodes(nodes)) != 0) return std::nullopt;
  }
  return list;
}

std::optional<HintBits> read_hint_bits(Reader& reader, int nodes) {
  if (nodes > kEnumeratedNodes) return std::nullopt;
  HintBits bits{read_bits(reader, nodes), read_bits(reader, nodes)};
  uint64_t valid = nodes < 6 ? all_nodes(1 << nodes) : ~uint64_t{0};
  for (size_t i = 0; i < bits.offered.size(); i++) {
    if ((bits.preferred[i] & ~bits.offered[i]) != 0 || (bits.offered[i] & ~valid) != 0) return std::nullopt;
  }
  if (HintBits::test(bits.offered, 0)) return std::nullopt;  // the empty mask is no hint
  return bits;
}

std::optional<LinearHints> read_linear(Reader& reader, int nodes) {
  LinearHints linear;
  linear.request = reader.wide();
  linear.must = NodeMask(reader.wide());
  linear.domain = NodeMask(reader.wide());
  linear.narrowest = static_cast<int>(reader.word());
  linear.packages_needed = static_cast<int>(reader.word());
  for (int i = 0; i < nodes; i++) linear.free.push_back(reader.wide());
  for (int i = 0; linear.packages_needed > 0 && i < nodes; i++) linear.packages.push_back(reader.wide());
  uint64_t known = all_nodes(nodes);
  bool is_right = linear.request > 0 && (linear.must.bits() & ~linear.domain.bits()) == 0 &&
                  (linear.domain.bits() & ~known) == 0 && linear.narrowest >= 1 &&
                  linear.narrowest <= nodes && linear.packages_needed >= 0 && linear.packages_needed <= 64;
  uint64_t sum = 0;
  for (int i = 0; i < nodes; i++) {
    // Sums stay exact, in doubles too.
    if (linear.free[i] > (uint64_t{1} << 53) - 1 - sum) return std::nullopt;
    sum += linear.free[i];
    if (linear.free[i] != 0 && !linear.domain.contains(i)) return std::nullopt;
  }
  return is_right ? std::optional(std::move(linear)) : std::nullopt;
}

}  // namespace

uint64_t LinearHints::free_in(NodeMask mask) const {
  uint64_t sum = 0;
  for_each_node(mask.bits(), [&](int node) { sum += free[node]; });
  return sum;
}

bool LinearHints::offers(NodeMask mask) const {
  return (mask.bits() & ~domain.bits()) == 0 && (must.bits() & ~mask.bits()) == 0 && free_in(mask) >= request;
}

bool LinearHints::prefers(NodeMask mask) const {
  if (mask.size() == narrowest) return true;
  if (packages_needed == 0) return false;
  uint64_t spanned = 0;
  for_each_node(mask.bits(), [&](int node) { spanned |= packages[node]; });
  return std::popcount(spanned) == packages_needed;
}

bool HintFamily::offers(NodeMask mask) const {
  if (auto* bits = std::get_if<HintBits>(&masks)) return HintBits::test(bits->offered, mask.bits());
  if (auto* linear = std::get_if<LinearHints>(&masks)) return linear->offers(mask);
  return std::ranges::any_of(std::get<HintList>(masks), [&](const ListedHint& h) { return h.mask == mask; });
}

bool HintFamily::prefers(NodeMask mask) const {
  if (auto* bits = std::get_if<HintBits>(&masks)) return HintBits::test(bits->preferred, mask.bits());
  if (auto* linear = std::get_if<LinearHints>(&masks)) return linear->offers(mask) && linear->prefers(mask);
  return std::ranges::any_of(std::get<HintList>(masks),
                             [&](const ListedHint& h) { return h.mask == mask && h.preferred; });
}

std::vector<uint32_t> HintFamily::to_words() const {
  Writer writer;
  uint32_t flags = (any_preferred ? kAnyPreferred : 0) | (any_other ? kAnyOther : 0);
  writer.word(static_cast<uint32_t>(masks.index()) | flags);
  writer.word(static_cast<uint32_t>(nodes));
  if (auto* list = std::get_if<HintList>(&masks)) {
    writer.word(static_cast<uint32_t>(list->size()));
    for (const ListedHint& hint : *list) {
      writer.wide(hint.mask.bits());
      writer.word(hint.preferred ? 1 : 0);
    }
  } else if (auto* bits = std::get_if<HintBits>(&masks)) {
    write_bits(writer, bits->offered, nodes);
    write_bits(writer, bits->preferred, nodes);
  } else {
    const LinearHints& linear = std::get<LinearHints>(masks);
    writer.wide(linear.request);
    writer.wide(linear.must.bits());
    writer.wide(linear.domain.bits());
    writer.word(static_cast<uint32_t>(linear.narrowest));
    writer.word(static_cast<uint32_t>(linear.packages_needed));
    for (uint64_t amount : linear.free) writer.wide(amount);
    for (uint64_t packages : linear.packages) writer.wide(packages);
  }
  return std::move(writer.words);
}

std::optional<HintFamily> HintFamily::from_words(std::span<const uint32_t> words) {
  Reader reader(words);
  uint32_t head = reader.word();
  HintFamily family;
  uint32_t nodes = reader.word();
  if (nodes < 1 || nodes > NodeMask::kBits || (head & ~(0xffu | kAnyPreferred | kAnyOther)) != 0) {
    return std::nullopt;
  }
  family.nodes = static_cast<int>(nodes);
  family.any_preferred = (head & kAnyPreferred) != 0;
  family.any_other = (head & kAnyOther) != 0;
  auto put = [&](auto&& form) {
    if (form) family.masks = *std::move(form);
    return form.has_value();
  };
  bool is_read = false;
  switch (head & 0xff) {
    case kList:
      is_read = put(read_list(reader, family.nodes));
      break;
    case kBits:
      is_read = put(read_hint_bits(reader, family.nodes));
      break;
    case kLinear:
      is_read = put(read_linear(reader, family.nodes));
      break;
    default:
      break;
  }
  if (!is_read || !reader.at_end()) return std::nullopt;
  return family;
}

}  // namespace numalign
