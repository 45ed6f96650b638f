#include "core/task_files.h"

#include <algorithm>
#include <charconv>

namespace numalign {
namespace {

// Cuts the first word off `text`.
std::string_view next_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

// The whole word as a number.
template <class Number>
std::optional<Number> to_number(std::string_view word) {
  Number number{};
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

// The number behind `key` and a colon, at the start of a line.
std::optional<uint64_t> value_of(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::string_view rest = text.substr(at + key.size());
    size_t colon = rest.find_first_not_of(" \t");
    if (colon == std::string_view::npos || rest[colon] != ':') continue;
    rest.remove_prefix(colon + 1);
    return to_number<uint64_t>(next_word(rest));
  }
  return {};
}

}  // namespace

std::optional<TaskStat> parse_task_stat(std::string_view text) {
  // The command may contain anything, even parentheses and line feeds.
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  TaskStat stat;
  stat.command = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  std::string_view state = next_word(rest);
  if (state.size() != 1) return {};
  stat.state = state[0];
  // The field numbers of proc_pid_stat(5).
  constexpr int kParent = 4, kFlags = 9, kUser = 14, kSystem = 15, kStart = 22, kProcessor = 39;
  for (int field = kParent; field <= kProcessor; field++) {
    std::string_view word = next_word(rest);
    auto read = [&](auto& member) {
      auto number = to_number<std::remove_reference_t<decltype(member)>>(word);
      if (number) member = *number;
      return number.has_value();
    };
    bool ok = true;
    if (field == kParent) ok = read(stat.parent);
    if (field == kFlags) ok = read(stat.flags);
    if (field == kUser) ok = read(stat.user_ticks);
    if (field == kSystem) ok = read(stat.system_ticks);
    if (field == kStart) ok = read(stat.start_ticks);
    if (field == kProcessor) ok = read(stat.processor) && stat.processor >= 0;
    if (!ok) return {};
  }
  return stat;
}

std::optional<TaskSchedstat> parse_task_schedstat(std::string_view text) {
  auto run = to_number<uint64_t>(next_word(text));
  auto delay = to_number<uint64_t>(next_word(text));
  auto timeslices = to_number<uint64_t>(next_word(text));
  if (!run || !delay || !timeslices) return {};
  return TaskSchedstat{*run, *delay, *timeslices};
}

TaskSwitches parse_task_sched(std::string_view text) {
  return {.voluntary = value_of(text, "nr_voluntary_switches"),
          .involuntary = value_of(text, "nr_involuntary_switches"),
          .migrations = value_of(text, "se.nr_migrations")};
}

TaskSwitches parse_task_status(std::string_view text) {
  return {.voluntary = value_of(text, "voluntary_ctxt_switches"),
          .involuntary = value_of(text, "nonvoluntary_ctxt_switches"),
          .migrations = {}};
}

}  // namespace numalign
