#include "core/plain_pod.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/id_set.h"
#include "core/json_scan.h"

namespace numalign {
namespace {

constexpr uint64_t kMaxExact = (uint64_t{1} << 53) - 1;

class PodCheck {
 public:
  explicit PodCheck(std::string_view text) : scan_(text) {}

  bool pod() {
    constexpr std::string_view kNames[] = {"uid",      "name",        "namespace", "containers",  "policy",
                                           "scope",    "options",     "owner",     "enforcement", "upcoming",
                                           "transfer", "formerOwner", "admittedAt"};
    const bool is_pod = members_in_order(
        kNames,
        [&](std::string_view name) {
          if (name == "containers") return scan_.list([&] { return container(); });
          if (name == "options") return scan_.object([&](std::string_view) { return flag(); });
          if (name == "owner") return owner();
          if (name == "enforcement") return enforcement();
          if (name == "upcoming" || name == "transfer" || name == "formerOwner") return null();
          return text();
        },
        "namespace");
    return is_pod && scan_.at_end();
  }

 private:
  // An object with these members, each once; the last `optional` may be missing.
  template <size_t kCount, class Each>
  bool members(const std::string_view (&names)[kCount], size_t optional, Each each) {
    uint32_t seen = 0;
    const bool is_object = scan_.object([&](std::string_view name) {
      const auto at = static_cast<size_t>(std::ranges::find(names, name) - names);
      if (at == kCount || (seen >> at & 1) != 0) return false;
      seen |= 1u << at;
      return each(name);
    });
    const uint32_t required = (1u << (kCount - optional)) - 1;
    return is_object && (seen & required) == required;
  }
  // The same for members in this order, one of which may be missing.
  template <size_t kCount, class Each>
  bool members_in_order(const std::string_view (&names)[kCount], Each each, std::string_view optional = "") {
    size_t next = 0;
    const bool is_object = scan_.object([&](std::string_view name) {
      if (next < kCount && names[next] == optional && name != optional) next++;
      return next < kCount && name == names[next++] && each(name);
    });
    return is_object && next == kCount;
  }

  bool text() { return take() && taken_.front() == '"'; }
  bool flag() { return take() && (taken_ == "true" || taken_ == "false"); }
  bool null() { return take() && taken_ == "null"; }
  bool text_or_null() { return take() && (taken_.front() == '"' || taken_ == "null"); }
  bool whole(uint64_t greatest = kMaxExact) {
    uint64_t number = 0;
    if (!take()) return false;
    const char* last = taken_.data() + taken_.size();
    const auto [end, error] = std::from_chars(taken_.data(), last, number);
    return error == std::errc() && end == last && number <= greatest;
  }
  bool take() { return scan_.value(&taken_); }

  bool nodes() {
    return scan_.list([&] { return whole(NodeSet::kMaxId); });
  }
  bool nodes_or_null() {
    JsonScan ahead = scan_;
    if (!take()) return false;
    if (taken_ == "null") return true;
    scan_ = ahead;
    return nodes();
  }
  bool memory() {
    constexpr std::string_view kNames[] = {"nodes", "type", "bytes"};
    return scan_.list([&] {
      return members_in_order(kNames, [&](std::string_view name) {
        return name == "nodes" ? nodes() : name == "type" ? text() : whole();
      });
    });
  }
  bool devices() {
    constexpr std::string_view kNames[] = {"id", "nodes"};
    return scan_.object([&](std::string_view) {
      return scan_.list([&] {
        return members_in_order(
            kNames, [&](std::string_view name) { return name == "id" ? text() : nodes_or_null(); });
      });
    });
  }
  bool hint() {
    constexpr std::string_view kNames[] = {"nodes", "preferred"};
    return members(kNames, 0,
                   [&](std::string_view name) { return name == "nodes" ? nodes_or_null() : flag(); });
  }
  bool reusable() {
    constexpr std::string_view kNames[] = {"cpus", "memory", "devices"};
    return members(kNames, 0, [&](std::string_view name) {
      return name == "cpus" ? text() : name == "memory" ? memory() : devices();
    });
  }
  bool container() {
    constexpr std::string_view kNames[] = {"name", "kind",   "started", "request",  "cpus",     "held",
                                           "hint", "memory", "devices", "reusable", "isolation"};
    return members(kNames, 1, [&](std::string_view name) {
      if (name == "started") return flag();
      if (name == "request") return scan_.object([&](std::string_view) { return whole(); });
      if (name == "hint") return hint();
      if (name == "memory") return memory();
      if (name == "devices") return devices();
      if (name == "reusable") return reusable();
      return text();
    });
  }
  bool owner() {
    constexpr std::string_view kNames[] = {"kind", "uuid", "pid", "command", "cgroup"};
    return members_in_order(kNames, [&](std::string_view name) {
      if (name == "cgroup") return null();
      if (name == "command") return text_or_null();
      if (name != "pid") return text();
      JsonScan ahead = scan_;
      if (null()) return true;
      scan_ = ahead;
      return whole();
    });
  }
  bool enforcement() {
    constexpr std::string_view kNames[] = {"level", "target"};
    return members_in_order(kNames,
                            [&](std::string_view name) { return name == "level" ? text() : text_or_null(); });
  }

  JsonScan scan_;
  std::string_view taken_;
};

}  // namespace

bool is_plain_pod(std::string_view pod) { return PodCheck(pod).pod(); }

}  // namespace numalign
