#include "core/journal_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/crc32.h"
#include "core/json_scan.h"
#include "core/pod_rows.h"

namespace numalign {
namespace {

constexpr std::string_view kSealBegin = ",\"checksum\":\"crc32:";
constexpr std::string_view kSealEnd = "\"}";
constexpr size_t kSealDigits = 8;
constexpr size_t kSeal = kSealBegin.size() + kSealDigits + kSealEnd.size();

// The checksum in a line that has the right one; else empty.
std::string_view seal_of(std::string_view line) {
  if (line.size() <= kSeal || !line.ends_with(kSealEnd)) return {};
  const size_t body = line.size() - kSeal;
  const std::string_view digits = line.substr(body + kSealBegin.size(), kSealDigits);
  const std::array<char, kSealDigits> expected = crc32_digits(line.substr(0, body));
  const bool is_sealed = line.substr(body).starts_with(kSealBegin) &&
                         digits == std::string_view(expected.data(), expected.size());
  return is_sealed ? digits : std::string_view();
}

// Of these, a later line replaces the value of an earlier one.
constexpr std::string_view kReplaced[] = {"line",   "bootId",  "writtenAt", "cpus",
                                          "memory", "kubelet", "quiet",     "settings"};

// A merged change has them; a whole state has none.
constexpr std::string_view kOfChanges[] = {"released", "gone", "named"};

// Takes lines of changes, or the line of a whole state.
class Merger {
 public:
  explicit Merger(std::optional<uint64_t> generation)
      : is_state_(!generation), generation_(generation.value_or(0)) {}

  uint64_t generation() const { return generation_; }

  // Takes a line. False if it is not plain.
  bool take(std::string_view line) {
    JsonScan scan(line);
    std::vector<std::string_view> names;
    std::string_view pods, released, named, kind, number;
    const bool is_object = scan.object([&](std::string_view name) {
      if (std::ranges::count(names, name) > 0) return false;
      names.push_back(name);
      std::string_view value;
      if (name == "pods" && is_state_) return bring_all(scan);
      if (!scan.value(&value)) return false;
      if (name == "generation")
        number = value;
      else if (name == "pods")
        pods = value;
      else if (name == "released" && !is_state_)
        released = value;
      else if (name == "named" && !is_state_)
        named = value;
      else if (name == "checksum")
        return true;
      else if (is_state_ ? std::ranges::count(kOfChanges, name) > 0
                         : std::ranges::count(kReplaced, name) == 0)
        return false;
      else
        put(name, value);
      if (name == "line") kind = value;
      return true;
    });
    return is_object && scan.at_end() && kind == (is_state_ ? "\"state\"" : "\"change\"") &&
           follows(number) && release(released) && (is_state_ ? has_all_ : bring(pods)) && remember(named);
  }

  // `words`: see PodRows::words().
  std::string change(std::vector<uint32_t>* words) {
    std::string text = "{\"generation\":" + std::to_string(generation_);
    for (const auto& [name, value] : members_) append(text, {",\"", name, "\":", value});
    text += ",\"released\":[";
    append_list(text, released_);
    text += "],\"gone\":[";
    append_list(text, gone_);
    text += "],\"named\":[";
    append_list(text, named_);
    for (const Pod& pod : pods_)
      if (!pod.text.empty()) all_.add(pod.text);
    *words = all_.words();
    append(text, {"],\"pods\":", all_.text(), "}"});
    return text;
  }

 private:
  struct Pod {
    std::string_view text;  // empty: a later line has released it
  };

  static void append(std::string& text, std::initializer_list<std::string_view> parts) {
    for (std::string_view part : parts) text += part;
  }
  static void append_list(std::string& text, const std::vector<std::string_view>& items) {
    for (size_t i = 0; i < items.size(); i++) append(text, {i == 0 ? "" : ",", items[i]});
  }

  void put(std::string_view name, std::string_view value) {
    auto known = std::ranges::find(members_, name, &std::pair<std::string_view, std::string_view>::first);
    if (known != members_.end())
      known->second = value;
    else
      members_.emplace_back(name, value);
  }

  // A generation has up to 15 digits.
  bool follows(std::string_view number) {
    uint64_t found = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), found);
    const bool is_next = error == std::errc() && end == number.data() + number.size() &&
                         number.size() <= 15 && (is_state_ || found == generation_ + 1);
    if (is_next) generation_ = found;
    return is_next;
  }

  bool release(std::string_view list) {
    if (list.empty()) return true;
    JsonScan scan(list);
    return scan.list([&] {
      std::string_view uid;
      if (!scan.text(&uid)) return false;
      const std::string_view quoted(uid.data() - 1, uid.size() + 2);
      if (auto place = places_.find(uid); place != places_.end()) {
        pods_[place->second].text = {};
        places_.erase(place);
        gone_.push_back(quoted);
        off_record_.insert(uid);
        return true;
      }
      released_.push_back(quoted);
      return off_record_.insert(uid).second;
    });
  }

  bool bring(std::string_view list) {
    if (list.empty()) return true;
    JsonScan scan(list);
    return scan.list([&] {
      const char* begin = scan.next();
      std::string_view uid;
      int uids = 0;
      const bool is_object = scan.object([&](std::string_view name) {
        std::string_view value;
        if (name != "uid") return scan.value(&value);
        uids++;
        return scan.text(&uid);
      });
      if (!is_object || uids != 1) return false;
      const std::string_view text(begin, static_cast<size_t>(scan.next() - begin));
      if (auto [place, is_new] = places_.try_emplace(uid, pods_.size()); is_new)
        pods_.push_back({text});
      else
        pods_[place->second].text = text;
      return true;
    });
  }

  // The pods of a whole state, each once.
  bool bring_all(JsonScan& scan) {
    std::unordered_set<std::string_view> uids;
    has_all_ = scan.list([&] {
      std::string_view uid;
      return all_.take(scan, &uid) && uids.insert(uid).second;
    });
    return has_all_;
  }

  bool remember(std::string_view list) {
    if (list.empty()) return true;
    JsonScan scan(list);
    return scan.list([&] { return scan.value(&named_.emplace_back()); });
  }

  const bool is_state_;
  uint64_t generation_;
  std::vector<std::pair<std::string_view, std::string_view>> members_;
  std::vector<Pod> pods_;                                // of changes
  PodRows all_;                                          // of the whole state, or in the end of changes
  bool has_all_ = false;                                 // of the whole state
  std::unordered_map<std::string_view, size_t> places_;  // in pods_, by uid
  std::vector<std::string_view> released_, gone_, named_;
  // Neither on record before the first line any more, nor brought since.
  std::unordered_set<std::string_view> off_record_;
};

}  // namespace

std::optional<MergedLines> merge_lines(std::string_view bytes, std::optional<uint64_t> generation) {
  Merger merger(generation);
  MergedLines merged;
  while (merged.length < bytes.size()) {
    const size_t newline = bytes.find('\n', merged.length);
    const bool is_last = newline == std::string_view::npos || newline + 1 == bytes.size();
    const std::string_view line = bytes.substr(merged.length, newline - merged.length);
    const std::string_view seal = newline == std::string_view::npos ? "" : seal_of(line);
    if (seal.empty()) {
      if (!is_last) return {};
      merged.has_tail = true;
      break;
    }
    if (!merger.take(line)) return {};
    merged.seal = seal;
    merged.length = newline + 1;
  }
  merged.generation = merger.generation();
  if (merged.length > 0) merged.change = merger.change(&merged.words);
  return merged;
}

}  // namespace numalign
