#include "core/pod_rows.h"

#include "core/id_list.h"
#include "core/set_words.h"

namespace numalign {
namespace {

// A text that is copied but for some parts.
class Template {
 public:
  explicit Template(const char* begin) : copied_(begin) {}
  // Puts `instead` in the place of what is between the two.
  void replace(const char* from, const char* to, std::string_view instead) {
    text_.append(copied_, from) += instead;
    copied_ = to;
  }
  std::string up_to(const char* end) { return std::move(text_.append(copied_, end)); }

 private:
  const char* copied_;
  std::string text_;
};

}  // namespace

// Reads one pod. The words that it has added are of use only if the pod has a row.
class PodRows::Reader {
 public:
  Reader(PodRows& pods, const JsonScan& scan) : pods_(pods), scan_(scan) {}

  // What comes next.
  const JsonScan& scan() const { return scan_; }
  std::string_view uid() const { return uid_; }

  bool pod() {
    Template pod(scan_.next());
    unsigned seen = 0;
    const bool is_object = scan_.object([&](std::string_view name) {
      if (name == "uid") return once(seen, 1) && uid_text(pod);
      if (name == "name") return once(seen, 2) && text(pod, &name_);
      if (name == "admittedAt") return once(seen, 4) && text(pod, &admitted_at_);
      if (name == "containers") return once(seen, 8) && containers(pod);
      std::string_view value;
      return scan_.value(&value) && ((name != "booking" && name != "upcoming") || value == "null");
    });
    if (!is_object || seen != 15) return false;
    template_ = pods_.number_of(pod.up_to(scan_.next()));
    return true;
  }

  // REQUIRES: pod() returned true.
  std::string row() const {
    const std::string uid = '"' + std::string(uid_) + '"';
    std::string row = uid;
    for (std::string_view text : {name_ == uid ? "0" : name_, admitted_at_}) (row += ',') += text;
    append(row, template_);
    append(row, container_count_);
    return row + containers_;
  }

 private:
  // False the second time.
  static bool once(unsigned& seen, unsigned which) {
    const bool is_first = (seen & which) == 0;
    seen |= which;
    return is_first;
  }
  static void append(std::string& row, size_t number) { (row += ',') += std::to_string(number); }

  bool uid_text(Template& pod) {
    const char* begin = scan_.next();
    if (!scan_.text(&uid_)) return false;
    pod.replace(begin, scan_.next(), "\"\"");
    return true;
  }
  bool text(Template& of, std::string_view* taken) {
    if (!scan_.value(taken) || taken->front() != '"') return false;
    of.replace(taken->data(), scan_.next(), "\"\"");
    return true;
  }
  bool containers(Template& pod) {
    const char* begin = scan_.next();
    if (!scan_.list([&] { return container(); })) return false;
    pod.replace(begin, scan_.next(), "[]");
    return true;
  }
  bool container() {
    Template container(scan_.next());
    unsigned seen = 0;
    std::string_view cpus, held;
    const bool is_object = scan_.object([&](std::string_view name) {
      if (name == "cpus") return once(seen, 1) && text(container, &cpus);
      if (name == "held") return once(seen, 2) && text(container, &held);
      std::string_view value;
      return scan_.value(&value);
    });
    if (!is_object || seen != 3) return false;
    container_count_++;
    append(containers_, pods_.number_of(container.up_to(scan_.next())));
    return set(cpus) && set(held);
  }
  bool set(std::string_view list) {
    const Result<CpuSet> set = parse_id_list<CpuTag>(list.substr(1, list.size() - 2));
    if (!set.ok()) return false;
    const size_t count = word_count(set.value());
    pods_.words_.resize(pods_.words_.size() + count);
    copy_words(set.value(), pods_.words_.data() + pods_.words_.size() - count);
    append(containers_, count);
    return true;
  }

  PodRows& pods_;
  JsonScan scan_;
  std::string_view uid_, name_, admitted_at_;
  size_t template_ = 0, container_count_ = 0;
  std::string containers_;
};

size_t PodRows::number_of(std::string text) {
  if (auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const size_t number = templates_.size();
  numbers_.emplace(templates_.emplace_back(std::move(text)), number);
  return number;
}

void PodRows::add_row(std::string_view row) {
  if (!rows_.empty()) rows_ += ',';
  rows_ += row;
}

bool PodRows::take_row(JsonScan& scan, std::string_view* uid) {
  Reader reader(*this, scan);
  const size_t words = words_.size();
  if (!reader.pod()) {
    words_.resize(words);
    return false;
  }
  scan = reader.scan();
  *uid = reader.uid();
  add_row(reader.row());
  return true;
}

void PodRows::add(std::string_view pod) {
  JsonScan scan(pod);
  std::string_view uid;
  if (!take_row(scan, &uid)) add_row(pod);
}

bool PodRows::take(JsonScan& scan, std::string_view* uid) {
  if (take_row(scan, uid)) return true;
  const char* begin = scan.next();
  int uids = 0;
  const bool is_object = scan.object([&](std::string_view name) {
    std::string_view value;
    if (name != "uid") return scan.value(&value);
    uids++;
    return scan.text(uid);
  });
  if (is_object && uids == 1) add_row({begin, static_cast<size_t>(scan.next() - begin)});
  return is_object && uids == 1;
}

std::string PodRows::text() const {
  std::string text = "{\"templates\":[";
  for (size_t i = 0; i < templates_.size(); i++) (text += i == 0 ? "" : ",") += templates_[i];
  return ((text += "],\"rows\":[") += rows_) += "]}";
}

}  // namespace numalign
