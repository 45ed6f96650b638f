#include "core/id_list.h"

#include <charconv>

namespace numalign {
namespace {

// The whole of `text` as a number, or -1.
int parse_id(std::string_view text, int max_id) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.front() == '-') return -1;
  int value = -1;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = status == std::errc{} && end == text.data() + text.size();
  return whole && value <= max_id ? value : -1;
}

Error invalid_part(std::string_view part, int max_id) {
  // Quotes a part only up to a readable length; the text may be a whole file.
  constexpr size_t kQuoted = 40;
  std::string quoted(part.substr(0, kQuoted));
  if (part.size() > kQuoted) quoted += "…";
  return {ErrorCode::kInvalidList, "\"" + quoted +
                                       "\" is neither an id nor an ascending range of ids from 0 to " +
                                       std::to_string(max_id)};
}

}  // namespace

template <class Tag>
Result<IdSet<Tag>> parse_id_list(std::string_view text) {
  constexpr int kMaxId = Tag::kMaxId;
  IdSet<Tag> set;
  if (text.empty()) return set;
  for (size_t begin = 0; begin <= text.size();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, comma - begin);
    size_t dash = part.find('-');
    int first = parse_id(part.substr(0, dash), kMaxId);
    int last = dash == part.npos ? first : parse_id(part.substr(dash + 1), kMaxId);
    if (first < 0 || last < first) return invalid_part(part, kMaxId);
    set.insert_range(first, last);
    begin = comma + 1;
  }
  return set;
}

template <class Tag>
std::string format_id_list(const IdSet<Tag>& set) {
  std::string text;
  for (int first = set.first(); first >= 0;) {
    int last = first;
    while (set.contains(last + 1)) last++;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
    first = set.next(last + 1);
  }
  return text;
}

template Result<CpuSet> parse_id_list<CpuTag>(std::string_view);
template Result<NodeSet> parse_id_list<NodeTag>(std::string_view);
template std::string format_id_list<CpuTag>(const CpuSet&);
template std::string format_id_list<NodeTag>(const NodeSet&);

}  // namespace numalign
