// Pods of lines of state.json, for lib/state/format/pod-rows.ts. Most of what they say is the same in many
// of them: it is handed on once, as templates, which JavaScript decodes once. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/json_scan.h"

namespace numalign {

class PodRows {
 public:
  // Adds the JSON of a pod.
  void add(std::string_view pod);
  // Takes the next value and adds it. False if it is no object with one uid, a text as of JsonScan::text().
  bool take(JsonScan& scan, std::string_view* uid);

  // The JSON of all of them: {"templates":[...],"rows":[...]}. A row: uid, name (0: the uid), admittedAt and
  // the template of the pod, in which these three are empty and `containers` is too; the number of
  // containers, and for each its template, in which `cpus` and `held` are empty, and the numbers of the words
  // of both. A pod that has no such template (with a booking or a change under way) is a row as it is.
  std::string text() const;
  // Those words, one after the other.
  const std::vector<uint32_t>& words() const { return words_; }

 private:
  class Reader;
  bool take_row(JsonScan& scan, std::string_view* uid);
  void add_row(std::string_view row);
  size_t number_of(std::string text);

  std::deque<std::string> templates_;
  std::unordered_map<std::string_view, size_t> numbers_;  // of templates
  std::string rows_;
  std::vector<uint32_t> words_;
};

}  // namespace numalign
