#include "platform/discovery/hwloc_xml.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/id_set.h"

namespace numalign {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;  // lstopo's XML of a machine with 8,192 CPUs is below 10 MB
constexpr size_t kMaxDepth = 128;               // real machines, PCI bridges included, stay below 30
constexpr std::string_view kSpaces = " \t\r\n";

using Failure = std::optional<Error>;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::optional<uint64_t> parse_number(std::string_view text, int base = 10) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// ---- XML ----

struct Attribute {
  std::string_view name;
  std::string_view value;
};

enum class Event { kOpen, kClose, kText, kEnd };

// A pull reader for the XML that hwloc writes, and comments. No entity is ever expanded: no value that
// matters holds one.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  // Moves to the next tag or text. After kOpen, name() and attribute() describe the tag; after kText, text().
  std::optional<Event> next() {
    if (pending_close_) {
      pending_close_ = false;
      return pop();
    }
    while (true) {
      size_t text_start = at_;
      at_ = std::min(text_.find('<', at_), text_.size());
      content_ = text_.substr(text_start, at_ - text_start);
      if (content_.find_first_not_of(kSpaces) != content_.npos) {
        return open_.empty() ? fail("text outside of the document's element") : std::optional(Event::kText);
      }
      if (at_ == text_.size()) return end();
      if (starts("</")) return close();
      if (!starts("<?") && !starts("<!")) return open();
      if (!skip_markup()) return std::nullopt;
    }
  }

  std::string_view name() const { return name_; }
  std::string_view text() const { return content_; }
  std::optional<std::string_view> attribute(std::string_view name) const {
    auto found = std::ranges::find(attributes_, name, &Attribute::name);
    return found == attributes_.end() ? std::nullopt : std::optional(found->value);
  }
  size_t depth() const { return open_.size(); }

  std::nullopt_t fail(std::string what) {
    auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    error_ = {ErrorCode::kHwloc, "hwloc XML, line " + std::to_string(line) + ": " + std::move(what) +
                                     "; expected a document as \"lstopo --of xml\" writes it"};
    return std::nullopt;
  }
  const Error& error() const { return error_; }

 private:
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  std::optional<Event> end() {
    if (!open_.empty()) return fail("the document ends inside <" + std::string(open_.back()) + ">");
    if (!seen_element_) return fail("the document has no element");
    return Event::kEnd;
  }

  bool skip_markup() {
    if (starts("<?")) return skip_past("?>", "a processing instruction");
    if (starts("<!--")) return skip_past("-->", "a comment");
    std::string_view rest = text_.substr(at_);
    bool is_plain_doctype = starts("<!DOCTYPE ") && rest.substr(0, rest.find('>')).find('[') == rest.npos;
    if (is_plain_doctype && !seen_element_) return skip_past(">", "the document type");
    fail("a declaration that hwloc never writes (an entity, CDATA)");
    return false;
  }

  bool skip_past(std::string_view terminator, const char* what) {
    size_t found = text_.find(terminator, at_);
    if (found == text_.npos) {
      fail(std::string("the document ends inside ") + what);
      return false;
    }
    at_ = found + terminator.size();
    return true;
  }

  std::string_view take_name() {
    size_t start = at_;
    auto is_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == '-';
    };
    while (at_ < text_.size() && is_name(text_[at_])) at_++;
    return text_.substr(start, at_ - start);
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }

  std::optional<Event> open() {
    if (open_.empty() && seen_element_) return fail("a second element after the document's own");
    at_++;
    name_ = take_name();
    if (name_.empty()) return fail("'<' without the name of an element");
    attributes_.clear();
    for (skip_spaces(); at_ < text_.size() && !starts(">") && !starts("/>"); skip_spaces()) {
      if (!take_attribute()) return std::nullopt;
    }
    if (at_ == text_.size()) return fail("the document ends inside the tag <" + std::string(name_) + ">");
    if (open_.size() == kMaxDepth) return fail("elements are nested too deep");
    seen_element_ = true;
    open_.push_back(name_);
    pending_close_ = starts("/>");
    at_ += pending_close_ ? 2 : 1;
    return Event::kOpen;
  }

  bool take_attribute() {
    std::string_view name = take_name();
    size_t end = text_.find('"', std::min(at_ + 2, text_.size()));
    if (name.empty() || !starts("=\"") || end == text_.npos) {
      fail("the tag <" + std::string(name_) + "> is not closed, or has something else than name=\"value\"");
      return false;
    }
    std::string_view value = text_.substr(at_ + 2, end - at_ - 2);
    if (value.find('<') != value.npos) {
      fail("the value of " + std::string(name) + " is not closed");
      return false;
    }
    attributes_.push_back({name, value});
    at_ = end + 1;
    return true;
  }

  std::optional<Event> close() {
    at_ += 2;
    std::string_view name = take_name();
    skip_spaces();
    if (!starts(">")) return fail("a closing tag is not closed");
    if (open_.empty() || open_.back() != name) return fail("</" + std::string(name) + "> closes nothing");
    at_++;
    return pop();
  }

  Event pop() {
    name_ = open_.back();
    open_.pop_back();
    return Event::kClose;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string_view name_;
  std::string_view content_;
  std::vector<Attribute> attributes_;
  std::vector<std::string_view> open_;
  bool pending_close_ = false;
  bool seen_element_ = false;
  Error error_{ErrorCode::kHwloc, ""};
};

// ---- hwloc bitmaps ----

// "0x00000003" or "0x1,,0xff": words of 32 bits, the greatest ids first, an empty word is 0.
// hwloc_bitmap_snprintf() writes it. Nothing for another text, an id above the limit, or a set without end
// ("0xf...f").
template <class Tag>
std::optional<IdSet<Tag>> parse_bitmap(std::string_view text) {
  std::vector<uint64_t> words;
  for (int base = 0;; base += 32) {
    size_t comma = text.rfind(',');
    std::string_view word = comma == text.npos ? text : text.substr(comma + 1);
    if (!word.empty()) {
      if (!word.starts_with("0x")) return std::nullopt;
      std::optional<uint64_t> bits = parse_number(word.substr(2), 16);
      if (!bits || *bits > UINT32_MAX) return std::nullopt;
      if (*bits != 0) {
        if (base + static_cast<int>(std::bit_width(*bits)) - 1 > Tag::kMaxId) return std::nullopt;
        size_t at = static_cast<size_t>(base) / 64;
        if (at >= words.size()) words.resize(at + 1);
        words[at] |= *bits << (base % 64);
      }
    } else if (comma == text.npos) {
      return std::nullopt;
    }
    if (comma == text.npos) return IdSet<Tag>::from_words(words);
    if (base > Tag::kMaxId) return std::nullopt;
    text = text.substr(0, comma);
  }
}

// ---- the document ----

// What an object says about its place; what its children are checked against.
struct Place {
  CpuSet cpus, complete_cpus;
  NodeSet nodes, complete_nodes;
  CpuSet taken{};             // by normal children so far
  int last_child_first = -1;  // the lowest CPU, offline ones included, of the last normal child
};

class Sanitizer {
 public:
  explicit Sanitizer(std::string_view text) : reader_(text) { out_.reserve(text.size()); }

  Result<HwlocXml> run() {
    if (!document()) return reader_.error();
    return HwlocXml{std::move(out_), std::move(devices_)};
  }

 private:
  bool fail(std::string what) {
    reader_.fail(std::move(what));
    return false;
  }
  void line(std::string_view text) {
    out_ += text;
    out_ += '\n';
  }
  void add_attribute(const char* name, std::string_view value) {
    for (std::string_view part : {std::string_view(" "), std::string_view(name), std::string_view("=\""),
                                  value, std::string_view("\"")}) {
      out_ += part;
    }
  }
  static std::string attribute(const char* name, std::string_view value) {
    return std::string(" ") + name + "=" + quoted(value);
  }

  bool document() {
    if (!reader_.next()) return false;
    if (reader_.name() != "topology")
      return fail("<topology> expected, not <" + std::string(reader_.name()) + ">");
    std::string_view version = reader_.attribute("version").value_or("1");
    if (!version.starts_with("2.")) {
      return fail("version 2 of hwloc's format expected, not " + std::string(version.substr(0, 20)) +
                  " (convert it with \"lstopo\" of hwloc 2, or \"--export-xml-flags v2\" of hwloc 3)");
    }
    line("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    line("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">");
    line("<topology version=\"2.0\">");
    if (!children(&Sanitizer::topology_child)) return false;
    if (!seen_root_) return fail("no <object type=\"Machine\">");
    if (seen_cpus_.empty()) return fail("the machine has no PU");
    if (seen_nodes_.empty()) return fail("the machine has no NUMANode");
    line("</topology>");
    return reader_.next().has_value();
  }

  // Calls `visit` after each opening tag below the element that was just opened, until that one closes.
  template <class... Args>
  bool children(bool (Sanitizer::*visit)(Args...), Args... args) {
    size_t depth = reader_.depth();
    while (true) {
      std::optional<Event> event = reader_.next();
      if (!event) return false;
      if (*event == Event::kClose && reader_.depth() < depth) return true;
      if (*event == Event::kOpen && !(this->*visit)(args...)) return false;
    }
  }

  bool skip_element() { return children(&Sanitizer::skip_element); }

  bool topology_child() {
    if (reader_.name() == "object") return !seen_root_ ? root() : fail("a second root object");
    if (!seen_root_)
      return fail("<object type=\"Machine\"> expected, not <" + std::string(reader_.name()) + ">");
    bool of_nodes = reader_.name() == "distances2" && reader_.attribute("type") == "NUMANode";
    return of_nodes ? distances() : skip_element();
  }

  bool root() {
    if (reader_.attribute("type") != "Machine") return fail("the root object is not a Machine");
    seen_root_ = true;
    std::optional<Place> place = read_place();
    if (!place) return false;
    std::string extra;
    std::string_view allowed_cpus = reader_.attribute("allowed_cpuset").value_or("");
    std::string_view allowed_nodes = reader_.attribute("allowed_nodeset").value_or("");
    if (parse_bitmap<CpuTag>(allowed_cpus)) extra += attribute("allowed_cpuset", allowed_cpus);
    if (parse_bitmap<NodeTag>(allowed_nodes)) extra += attribute("allowed_nodeset", allowed_nodes);
    return write_object("Machine", *place, extra);
  }

  bool object_child(Place* parent) {
    if (reader_.name() != "object") return skip_element();
    if (!reader_.attribute("cpuset")) return io_object(parent);  // I/O and Misc objects have none
    std::string type(reader_.attribute("type").value_or(""));
    std::optional<Place> place = read_place();
    if (!place) return false;
    bool is_memory = type == "NUMANode" || type == "MemCache";
    if (!fits(type, *place, *parent) || !(is_memory || joins_siblings(type, *place, *parent))) return false;
    if (type == "PU") return pu(*place);
    if (type == "NUMANode") return numa_node(*place);
    if (type == "L3Cache")
      return write_object("L3Cache", *place, " cache_size=\"0\" depth=\"3\" cache_type=\"0\"");
    if (type == "Group") return write_object("Group", *place, number("kind") + number("subkind"));
    if (type == "Package" || type == "Die" || type == "Core") return write_object(type, *place, "");
    if (is_memory) return children(&Sanitizer::object_child, &*place);
    // Discovery filters this type out. Writing the children alone could leave them out of order, which hwloc
    // reports on stderr; where it drops a level itself, it sorts them silently.
    return write_object("L5Cache", *place, " cache_size=\"0\" depth=\"5\" cache_type=\"0\"");
  }

  std::optional<Place> read_place() {
    auto cpus = parse_bitmap<CpuTag>(reader_.attribute("cpuset").value_or(""));
    auto nodes = parse_bitmap<NodeTag>(reader_.attribute("nodeset").value_or(""));
    if (!cpus) return bad_set("cpuset", CpuSet::kMaxId);
    if (!nodes) return bad_set("nodeset", NodeSet::kMaxId);
    CpuSet all_cpus = read_complete("cpuset", "complete_cpuset", *cpus);
    NodeSet all_nodes = read_complete("nodeset", "complete_nodeset", *nodes);
    return Place{*std::move(cpus), std::move(all_cpus), *std::move(nodes), std::move(all_nodes)};
  }
  // Most often the same text as that of the set itself, which is then not parsed again. Sets without end are
  // meant as "all": what the object has is then as good.
  template <class Tag>
  IdSet<Tag> read_complete(const char* name, const char* complete_name, const IdSet<Tag>& ids) const {
    std::string_view text = reader_.attribute(complete_name).value_or("");
    if (text == reader_.attribute(name)) return ids;
    return parse_bitmap<Tag>(text).value_or(ids);
  }
  std::nullopt_t bad_set(const std::string& name, int limit) {
    return reader_.fail("an object of type " + quoted(reader_.attribute("type").value_or("").substr(0, 20)) +
                        " has no " + name + " such as \"0x0000000f\" with ids up to " +
                        std::to_string(limit));
  }

  bool fits(const std::string& type, const Place& child, const Place& parent) {
    bool inside =
        child.cpus.is_subset_of(parent.cpus) && child.complete_cpus.is_subset_of(parent.complete_cpus) &&
        child.nodes.is_subset_of(parent.nodes) && child.complete_nodes.is_subset_of(parent.complete_nodes);
    bool consistent =
        child.cpus.is_subset_of(child.complete_cpus) && child.nodes.is_subset_of(child.complete_nodes);
    return (inside && consistent) ||
           fail("the sets of the " + type + " are not part of those of the object around it");
  }

  bool joins_siblings(const std::string& type, const Place& child, Place& parent) {
    if (child.complete_cpus.intersects(parent.taken))
      return fail("the " + type + " shares CPUs with another before it");
    int first = child.complete_cpus.first();
    if (first >= 0 && first < parent.last_child_first)
      return fail("the " + type + " is not in the order of CPUs");
    parent.taken |= child.complete_cpus;
    if (first >= 0) parent.last_child_first = first;
    return true;
  }

  bool pu(Place& place) {
    int id = place.cpus.first();
    if (place.cpus.size() != 1 || parse_number(reader_.attribute("os_index").value_or("")) != uint64_t(id)) {
      return fail("the cpuset of the PU is not its os_index");
    }
    if (seen_cpus_.contains(id)) return fail("PU " + std::to_string(id) + " is given twice");
    seen_cpus_.insert(id);
    return write_object("PU", place, "", &Sanitizer::pu_child);
  }

  bool numa_node(Place& place) {
    int id = place.nodes.first();
    if (place.nodes.size() != 1 || parse_number(reader_.attribute("os_index").value_or("")) != uint64_t(id)) {
      return fail("the nodeset of the NUMANode is not its os_index");
    }
    if (seen_nodes_.contains(id)) return fail("NUMANode " + std::to_string(id) + " is given twice");
    seen_nodes_.insert(id);
    return write_object("NUMANode", place, number("local_memory"), &Sanitizer::numa_node_child);
  }

  bool pu_child(Place* pu) {
    std::string_view type = reader_.attribute("type").value_or("");
    bool is_level = reader_.name() == "object" && reader_.attribute("cpuset");
    if (is_level && type != "NUMANode" && type != "MemCache") return fail("an object inside a PU");
    return object_child(pu);
  }

  bool numa_node_child(Place*) {
    if (reader_.name() == "object" && reader_.attribute("cpuset")) return fail("an object inside a NUMANode");
    if (reader_.name() == "page_type") {
      std::string page = number("size") + number("count");
      if (!page.empty()) line("<page_type" + page + "/>");
    }
    return skip_element();
  }

  // Bridges nest; what is behind them is as near to the CPUs as they are.
  bool io_object(Place* place) {
    if (reader_.name() != "object") return skip_element();
    std::string_view type = reader_.attribute("type").value_or("");
    if (type == "Bridge") return children(&Sanitizer::io_object, place);
    return type == "PCIDev" ? pci_device(*place) : skip_element();
  }

  bool pci_device(const Place& place) {
    std::string id(reader_.attribute("pci_busid").value_or(""));
    std::optional<PciDevice> device = parse_pci_type(reader_.attribute("pci_type").value_or(""));
    if (!is_pci_address(id) || !device) {
      return fail(
          "a PCIDev needs a pci_busid such as \"0000:3b:00.0\" and a pci_type such as \"0200 [8086:1572]\"");
    }
    if (!seen_devices_.insert(id).second) return fail("PCIDev " + id + " is given twice");
    device->id = std::move(id);
    if (!children(&Sanitizer::os_device, &*device)) return false;
    bool is_bridge = device->device_class >> 8 == 0x06;
    if (!is_bridge) devices_.push_back({*std::move(device), place.cpus});
    return true;
  }

  // "0200 [8086:1572] [8086:0001] 02": class, vendor and device; the rest does not matter.
  static std::optional<PciDevice> parse_pci_type(std::string_view text) {
    constexpr std::string_view kForm = "xxxx [xxxx:xxxx]";
    if (text.size() < kForm.size() || text.substr(4, 2) != " [" || text[10] != ':' || text[15] != ']') {
      return std::nullopt;
    }
    PciDevice device;
    for (auto [member, at] : {std::pair(&PciDevice::device_class, 0), std::pair(&PciDevice::vendor, 6),
                              std::pair(&PciDevice::device, 11)}) {
      std::optional<uint64_t> number = parse_number(text.substr(static_cast<size_t>(at), 4), 16);
      if (!number) return std::nullopt;
      device.*member = static_cast<uint16_t>(*number);
    }
    return device;
  }

  bool os_device(PciDevice* device) {
    bool is_named = reader_.attribute("type") == "OSDev" && reader_.attribute("osdev_type") != "4";  // 4: DMA
    std::string_view name = reader_.attribute("name").value_or("");
    // Entities are not expanded: no interface or disk has a name that needs one.
    bool is_plain = !name.empty() && name.find('&') == name.npos;
    if (reader_.name() == "object" && is_named && is_plain) device->names.emplace_back(name);
    return children(&Sanitizer::os_device, device);
  }

  // The attribute with a number as its value, as it is to be written; empty where there is none.
  std::string number(const char* name) const {
    std::optional<uint64_t> value = parse_number(reader_.attribute(name).value_or(""));
    return value ? attribute(name, std::to_string(*value)) : "";
  }
  // The kind of memory ("HBM"); only names that need no escaping.
  std::string subtype() const {
    std::string_view value = reader_.attribute("subtype").value_or("");
    bool plain = std::ranges::all_of(value, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    });
    return plain && !value.empty() ? attribute("subtype", value) : "";
  }

  // As hwloc writes it: from the highest word down, of those that are zero nothing but the comma.
  static std::string bitmap(std::span<const uint64_t> words) {
    std::string text;
    bool is_first = true;
    for (size_t i = words.size(); i-- > 0;) {
      for (uint64_t word : {words[i] >> 32, words[i] & UINT32_MAX}) {
        if (is_first && word == 0) continue;
        if (!is_first) text += ',';
        is_first = false;
        if (word == 0) continue;
        char digits[8];
        text += "0x";
        text.append(digits, std::to_chars(digits, digits + sizeof digits, word, 16).ptr);
      }
    }
    // The last word is always written.
    if (text.empty() || text.back() == ',') text += "0x0";
    return text;
  }

  template <class Tag>
  void add_sets(const char* name, const IdSet<Tag>& ids, const char* complete_name,
                const IdSet<Tag>& complete) {
    std::string text = bitmap(ids.words());
    add_attribute(name, text);
    add_attribute(complete_name, complete == ids ? text : bitmap(complete.words()));
  }

  bool write_object(const std::string& type, Place& place, const std::string& extra,
                    bool (Sanitizer::*child)(Place*) = &Sanitizer::object_child) {
    out_ += "<object";
    add_attribute("type", type);
    out_ += os_index();
    add_sets("cpuset", place.cpus, "complete_cpuset", place.complete_cpus);
    add_sets("nodeset", place.nodes, "complete_nodeset", place.complete_nodes);
    add_attribute("gp_index", std::to_string(++objects_));
    line(subtype() + extra + ">");
    if (!children(child, &place)) return false;
    line("</object>");
    return true;
  }
  std::string os_index() const {
    std::optional<uint64_t> value = parse_number(reader_.attribute("os_index").value_or(""));
    return value && *value < UINT32_MAX ? attribute("os_index", std::to_string(*value)) : "";
  }

  bool distances() {
    std::string head = "<distances2 type=\"NUMANode\" indexing=\"os\"" + number("nbobjs") + number("kind");
    std::string_view name = reader_.attribute("name").value_or("");
    if (name == "NUMALatency") head += attribute("name", name);
    bool complete =
        reader_.attribute("indexing") == "os" && !number("nbobjs").empty() && !number("kind").empty();
    uint64_t n = parse_number(reader_.attribute("nbobjs").value_or("")).value_or(0);
    std::vector<uint64_t> indexes, values;
    if (!matrix(&indexes, &values)) return false;
    NodeSet nodes;
    for (uint64_t id : indexes) {
      if (id <= NodeSet::kMaxId && seen_nodes_.contains(static_cast<int>(id)))
        nodes.insert(static_cast<int>(id));
    }
    if (!complete || indexes.size() != n || static_cast<uint64_t>(nodes.size()) != n ||
        values.size() != n * n) {
      return fail("the distances are not a square of values between NUMA nodes");
    }
    if (n < 2) return true;  // hwloc refuses a matrix of one
    line(head + ">");
    line(numbers("indexes", indexes));
    line(numbers("u64values", values));
    line("</distances2>");
    return true;
  }

  bool matrix(std::vector<uint64_t>* indexes, std::vector<uint64_t>* values) {
    std::vector<uint64_t>* into = nullptr;
    size_t depth = reader_.depth();
    while (true) {
      std::optional<Event> event = reader_.next();
      if (!event) return false;
      if (*event == Event::kClose && reader_.depth() < depth) return true;
      if (*event == Event::kOpen) into = reader_.name() == "indexes" ? indexes : values;
      if (*event == Event::kText && (into == nullptr || !append_numbers(reader_.text(), into))) {
        return fail("the distances are not numbers");
      }
    }
  }

  static bool append_numbers(std::string_view text, std::vector<uint64_t>* into) {
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
      if (text.empty()) return true;
      size_t length = std::min(text.find_first_of(kSpaces), text.size());
      std::optional<uint64_t> number = parse_number(text.substr(0, length));
      if (!number) return false;
      into->push_back(*number);
      text.remove_prefix(length);
    }
  }

  static std::string numbers(const std::string& tag, const std::vector<uint64_t>& numbers) {
    std::string content;
    for (uint64_t number : numbers) content += std::to_string(number) + " ";
    return "<" + tag + " length=\"" + std::to_string(content.size()) + "\">" + content + "</" + tag + ">";
  }

  XmlReader reader_;
  std::string out_;
  std::vector<HwlocXml::Device> devices_;
  CpuSet seen_cpus_;
  NodeSet seen_nodes_;
  std::set<std::string> seen_devices_;
  uint64_t objects_ = 0;
  bool seen_root_ = false;
};

}  // namespace

Result<HwlocXml> sanitize_hwloc_xml(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::kHwloc, "hwloc XML: the document has " + std::to_string(text.size()) +
                                        " bytes; at most " + std::to_string(kMaxBytes) + " are read"};
  }
  // A NUL ends the text for hwloc's own parser.
  if (text.find('\0') != text.npos) {
    return Error{ErrorCode::kHwloc,
                 "hwloc XML: the document holds a NUL byte; expected the text itself, not a file's name"};
  }
  return Sanitizer(text).run();
}

}  // namespace numalign
