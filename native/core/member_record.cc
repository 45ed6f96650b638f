#include "core/member_record.h"

#include <charconv>
#include <utility>

#include "core/id_list.h"
#include "core/json_scan.h"

namespace numalign {
namespace {

// Most threads of a process have the same sets, one after the other.
class SetText {
 public:
  const std::string& of(const CpuSet& set) {
    if (text_.empty() || set != set_) {
      set_ = set;
      text_ = '"' + format_id_list(set) + '"';
    }
    return text_;
  }

 private:
  CpuSet set_;
  std::string text_;
};

class SetOfText {
 public:
  // False if it is no list.
  bool parse(std::string_view text, CpuSet* set) {
    if (!is_known_ || text != text_) {
      Result<CpuSet> parsed = parse_id_list<CpuTag>(text);
      if (!parsed.ok()) return false;
      set_ = std::move(parsed).value();
      text_ = text;
      is_known_ = true;
    }
    *set = set_;
    return true;
  }

 private:
  bool is_known_ = false;
  std::string_view text_;
  CpuSet set_;
};

class RecordReader {
 public:
  RecordReader(std::string_view text, Places places) : scan_(text), places_(places) {}

  // False if it is damaged.
  bool read(std::string_view process, std::vector<MemberThread>* threads) {
    bool is_of_process = false;
    bool has_threads = false;
    std::vector<MemberThread> seen;
    const bool is_whole = scan_.object([&](std::string_view name) {
      if (name == "process") {
        std::string_view of;
        if (!scan_.text(&of)) return false;
        is_of_process = of == process;
        return true;
      }
      if (name == "threads") {
        has_threads = true;
        return scan_.list([&] { return row(&threads->emplace_back()); });
      }
      if (name == "seen") return scan_.list([&] { return number(&seen.emplace_back().tid); });
      std::string_view other;
      return scan_.value(&other);
    });
    threads->insert(threads->end(), std::make_move_iterator(seen.begin()),
                    std::make_move_iterator(seen.end()));
    // What was asked for is not on record: its reader knows of which process it is.
    return is_whole && scan_.at_end() && (is_of_process || places_ == Places::kWithAsked) && has_threads;
  }

 private:
  bool number(int* number) {
    std::string_view digits;
    if (!scan_.value(&digits)) return false;
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, *number);
    return error == std::errc() && end == last;
  }

  // Later values are of a newer format.
  bool row(MemberThread* thread) {
    int at = 0;
    const bool is_row = scan_.list([&] {
      switch (at++) {
        case 0:
          return number(&thread->tid);
        case 1:
          return set(0, &thread->chosen);
        case 2:
          if (!set(1, &thread->applied)) return false;
          thread->asked = thread->applied;
          return true;
        case 3:
          return set(2, &thread->asked);
        case 4:
          if (places_ == Places::kWithAsked) return set(3, &thread->place);
          [[fallthrough]];
        default: {
          std::string_view other;
          return scan_.value(&other);
        }
      }
    });
    return is_row && at >= 3;
  }

  bool set(int column, CpuSet* set) {
    std::string_view list;
    return scan_.text(&list) && sets_[column].parse(list, set);
  }

  JsonScan scan_;
  const Places places_;
  SetOfText sets_[4];
};

}  // namespace

std::string format_member_record(std::string_view process, std::span<const MemberThread> threads,
                                 Places places) {
  if (threads.empty()) return {};
  std::string text = "{\"process\":\"";
  std::string seen;
  SetText sets[4];
  text.reserve(64 + threads.size() * 32);
  text.append(process).append("\",\"threads\":[");
  const char* separator = "[";
  for (const MemberThread& thread : threads) {
    if (thread.applied.empty()) {
      seen.append(seen.empty() ? "" : ",").append(std::to_string(thread.tid));
      continue;
    }
    text.append(std::exchange(separator, ",[")).append(std::to_string(thread.tid)).append(",");
    text.append(sets[0].of(thread.chosen)).append(",").append(sets[1].of(thread.applied));
    const bool has_place = places == Places::kWithAsked;
    if (has_place || thread.asked != thread.applied) text.append(",").append(sets[2].of(thread.asked));
    if (has_place) text.append(",").append(sets[3].of(thread.place));
    text += ']';
  }
  text += ']';
  if (!seen.empty()) text.append(",\"seen\":[").append(seen).append("]");
  return text += '}';
}

std::vector<MemberThread> parse_member_record(std::string_view process, std::string_view text,
                                              Places places) {
  std::vector<MemberThread> threads;
  if (!RecordReader(text, places).read(process, &threads)) threads.clear();
  return threads;
}

}  // namespace numalign
