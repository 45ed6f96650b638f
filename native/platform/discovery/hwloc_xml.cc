#include "platform/discovery/hwloc_xml.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/id_set.h"
#include "platform/discovery/xml_reader.h"

namespace numalign {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;  // lstopo's XML of a machine with 8,192 CPUs is below 10 MB
constexpr std::string_view kSpaces = " \t\r\n";

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::optional<uint64_t> parse_number(std::string_view text, int base = 10) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// ---- hwloc bitmaps

// Parses bitmaps that hwloc_bitmap_snprintf() writes, like "0x00000003" or "0x1,,0xff": words of 32
// bits, the greatest ids first; an empty word is 0. nullopt for any other text, an id above the
// limit, or an infinite set ("0xf...f").
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

// ---- Distances

// Bits of the kind of a matrix, as in hwloc/distances.h.
constexpr uint64_t kFromOs = 1, kFromUser = 2, kMeansLatency = 4;

struct Distances {
  uint64_t kind;
  std::vector<uint64_t> nodes;
  // Row by row.
  std::vector<uint64_t> values;
};

// A list by ascending id for each node; empty unless a NodeInfo can hold every value.
std::map<int, std::vector<uint32_t>> rows_by_id(const Distances& matrix) {
  size_t n = matrix.nodes.size();
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; i++) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return matrix.nodes[i]; });
  std::map<int, std::vector<uint32_t>> rows;
  for (size_t i : order) {
    std::vector<uint32_t>& row = rows[static_cast<int>(matrix.nodes[i])];
    for (size_t j : order) {
      uint64_t value = matrix.values[i * n + j];
      if (value > UINT32_MAX) return {};
      row.push_back(static_cast<uint32_t>(value));
    }
  }
  return rows;
}

// ---- The document

// The place of an object, against which its children are checked.
struct Place {
  CpuSet cpus, complete_cpus;
  NodeSet nodes, complete_nodes;
  int object = MachineTree::kNoParent;  // the nearest outer object with CPUs, or itself
  CpuSet taken{};                       // by normal children so far
  int last_child_first = -1;            // the lowest CPU, even if offline, of the last normal child
};

class DocumentReader {
  using Event = XmlReader::Event;

 public:
  explicit DocumentReader(std::string_view text) : reader_(text) {}

  Result<HwlocXml> run() {
    if (!document()) return reader_.error();
    std::ranges::sort(xml_.nodes, {}, &NodeInfo::node);
    add_distances();
    return std::move(xml_);
  }

 private:
  bool fail(std::string what) {
    reader_.fail(std::move(what));
    return false;
  }

  bool document() {
    if (!reader_.next()) return false;
    if (reader_.name() != "topology")
      return fail("<topology> expected, not <" + std::string(reader_.name()) + ">");
    std::string_view version = reader_.attribute("version").value_or("1");
    if (!version.starts_with("2.") && !version.starts_with("3.")) {
      return fail("version 2 or 3 of hwloc's format expected, not " + std::string(version.substr(0, 20)) +
                  " (convert it with \"lstopo\" of hwloc 2 or 3)");
    }
    dma_type_ = version.starts_with("2.") ? "4" : "64";
    if (!children(&DocumentReader::topology_child)) return false;
    if (!seen_root_) return fail("no <object type=\"Machine\">");
    if (seen_cpus_.empty()) return fail("the machine has no PU");
    if (xml_.nodes.empty()) return fail("the machine has no NUMANode");
    return reader_.next().has_value();
  }

  // Calls `visit` for each opening tag inside the current element, until that closes.
  template <class... Args>
  bool children(bool (DocumentReader::*visit)(Args...), Args... args) {
    size_t depth = reader_.depth();
    while (true) {
      std::optional<Event> event = reader_.next();
      if (!event) return false;
      if (*event == Event::kClose && reader_.depth() < depth) return true;
      if (*event == Event::kOpen && !(this->*visit)(args...)) return false;
    }
  }

  bool skip_element() { return children(&DocumentReader::skip_element); }

  bool topology_child() {
    if (reader_.name() == "object") return !seen_root_ ? root() : fail("a second root object");
    if (!seen_root_)
      return fail("<object type=\"Machine\"> expected, not <" + std::string(reader_.name()) + ">");
    if (reader_.name() == "cpukind") return core_kind();
    if (reader_.name() == "info") return topology_info();
    if (reader_.name() == "memattr") return memory_attribute();
    bool of_nodes = reader_.name() == "distances2" && reader_.attribute("type") == "NUMANode";
    return of_nodes ? distances() : skip_element();
  }

  bool root() {
    if (reader_.attribute("type") != "Machine") return fail("the root object is not a Machine");
    seen_root_ = true;
    std::optional<Place> place = read_place();
    if (!place) return false;
    // An infinite set, or none, allows all.
    std::string_view allowed = reader_.attribute("allowed_cpuset").value_or("");
    xml_.allowed = parse_bitmap<CpuTag>(allowed).value_or(CpuSet());
    return enter(MachineTree::Kind::kOther, *place);
  }

  bool object_child(Place* parent) {
    if (reader_.name() != "object") return skip_element();
    if (!reader_.attribute("cpuset")) return io_object(parent);  // I/O and Misc objects have none
    std::string_view type = reader_.attribute("type").value_or("");
    std::optional<Place> place = read_place();
    if (!place) return false;
    place->object = parent->object;
    bool is_memory = type == "NUMANode" || type == "MemCache";
    if (!fits(type, *place, *parent) || !(is_memory || joins_siblings(type, *place, *parent))) return false;
    if (type == "PU") return pu(*place);
    if (type == "NUMANode") return numa_node(*place);
    if (is_memory) return children(&DocumentReader::object_child, &*place);
    return enter(kind_of(type), *place);
  }

  static MachineTree::Kind kind_of(std::string_view type) {
    if (type == "Package") return MachineTree::Kind::kPackage;
    if (type == "Die") return MachineTree::Kind::kDie;
    if (type == "L3Cache") return MachineTree::Kind::kL3Cache;
    if (type == "Core") return MachineTree::Kind::kCore;
    return MachineTree::Kind::kOther;
  }

  bool enter(MachineTree::Kind kind, Place& place,
             bool (DocumentReader::*child)(Place*) = &DocumentReader::object_child) {
    std::optional<uint64_t> id = number("os_index");
    bool is_known = id && *id < UINT32_MAX;
    place.object = xml_.tree.add(kind, place.object, is_known ? std::optional<unsigned>(*id) : std::nullopt);
    return children(child, &place);
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
  // Usually the same text as that of the set itself, which is then not parsed again. Infinite sets
  // mean "all", so what the object has is as good.
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

  bool fits(std::string_view type, const Place& child, const Place& parent) {
    bool inside =
        child.cpus.is_subset_of(parent.cpus) && child.complete_cpus.is_subset_of(parent.complete_cpus) &&
        child.nodes.is_subset_of(parent.nodes) && child.complete_nodes.is_subset_of(parent.complete_nodes);
    bool consistent =
        child.cpus.is_subset_of(child.complete_cpus) && child.nodes.is_subset_of(child.complete_nodes);
    return (inside && consistent) ||
           fail("the sets of the " + std::string(type) + " are not part of those of the object around it");
  }

  bool joins_siblings(std::string_view type, const Place& child, Place& parent) {
    if (child.complete_cpus.intersects(parent.taken))
      return fail("the " + std::string(type) + " shares CPUs with another before it");
    int first = child.complete_cpus.first();
    if (first >= 0 && first < parent.last_child_first)
      return fail("the " + std::string(type) + " is not in the order of CPUs");
    parent.taken |= child.complete_cpus;
    if (first >= 0) parent.last_child_first = first;
    return true;
  }

  bool pu(Place& place) {
    int id = place.cpus.first();
    if (place.cpus.size() != 1 || number("os_index") != uint64_t(id)) {
      return fail("the cpuset of the PU is not its os_index");
    }
    if (seen_cpus_.contains(id)) return fail("PU " + std::to_string(id) + " is given twice");
    seen_cpus_.insert(id);
    return enter(MachineTree::Kind::kPu, place, &DocumentReader::pu_child);
  }

  bool numa_node(Place& place) {
    int id = place.nodes.first();
    if (place.nodes.size() != 1 || number("os_index") != uint64_t(id)) {
      return fail("the nodeset of the NUMANode is not its os_index");
    }
    if (seen_nodes_.contains(id)) return fail("NUMANode " + std::to_string(id) + " is given twice");
    seen_nodes_.insert(id);
    xml_.tree.attach(place.object, id, is_ordinary_memory(reader_.attribute("subtype").value_or("")));
    xml_.nodes.push_back({id, number("local_memory").value_or(0), {}, {}});
    MemoryFacts& facts = xml_.memory.emplace_back(MemoryFacts{.node = id});
    facts.note_subtype(reader_.attribute("subtype").value_or(""));
    if (auto index = number("gp_index")) node_of_index_[*index] = id;
    page_types_.clear();
    if (!children(&DocumentReader::numa_node_child, &place)) return false;
    // The smallest is the base page.
    std::ranges::sort(page_types_, {}, &HugepagePool::page_bytes);
    if (!page_types_.empty()) page_types_.erase(page_types_.begin());
    xml_.nodes.back().hugepages = page_types_;
    return true;
  }

  bool pu_child(Place* pu) {
    std::string_view type = reader_.attribute("type").value_or("");
    bool is_level = reader_.name() == "object" && reader_.attribute("cpuset");
    if (is_level && type != "NUMANode" && type != "MemCache") return fail("an object inside a PU");
    return object_child(pu);
  }

  bool numa_node_child(Place*) {
    if (reader_.name() == "object" && reader_.attribute("cpuset")) return fail("an object inside a NUMANode");
    uint64_t size = number("size").value_or(0);
    if (reader_.name() == "page_type" && size > 0) {
      page_types_.push_back({size, number("count").value_or(0)});
    }
    if (reader_.name() == "info") {
      xml_.memory.back().note(reader_.attribute("name").value_or(""),
                              reader_.attribute("value").value_or(""));
    }
    return skip_element();
  }

  // Version 3 lists the sizes of pages once, the base page first, and does not count pages.
  bool topology_info() {
    if (reader_.attribute("name") != "PageSizes") return skip_element();
    std::vector<HugepagePool> pools;
    std::string sizes(reader_.attribute("value").value_or(""));
    std::ranges::replace(sizes, ',', ' ');
    std::vector<uint64_t> bytes;
    if (!append_numbers(sizes, &bytes)) return fail("PageSizes has no sizes such as \"4096,2097152\"");
    for (size_t i = 1; i < bytes.size(); i++) pools.push_back({bytes[i], 0});
    for (NodeInfo& node : xml_.nodes) node.hugepages = pools;
    return skip_element();
  }

  // Bridges nest. Devices behind them are as near to the CPUs as the bridges.
  bool io_object(const Place* place) {
    if (reader_.name() != "object") return skip_element();
    std::string_view type = reader_.attribute("type").value_or("");
    if (type == "Bridge") return children(&DocumentReader::io_object, place);
    return type == "PCIDev" ? pci_device(*place) : skip_element();
  }

  bool pci_device(const Place& place) {
    std::string id(reader_.attribute("pci_busid").value_or(""));
    std::optional<PciDevice> device = parse_pci_type(reader_.attribute("pci_type").value_or(""));
    if (!is_pci_address(id) || !device) {
      return fail(
          "a PCIDev needs a pci_busid such as \"0000:3b:00.0\" and a pci_type such as \"0200 [8086:1572]\"");
    }
    // Where hwloc knows 16 bits of a domain, devices of larger domains have the addresses of others.
    bool is_first = seen_devices_.insert(id).second;
    device->id = std::move(id);
    if (!children(&DocumentReader::os_device, &*device)) return false;
    bool is_bridge = device->device_class >> 8 == 0x06;
    if (is_first && !is_bridge) xml_.devices.push_back({*std::move(device), place.cpus});
    return true;
  }

  // Parses class, vendor and device from a text like "0200 [8086:1572] [8086:0001] 02".
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
    bool is_named = reader_.attribute("type") == "OSDev" && reader_.attribute("osdev_type") != dma_type_;
    std::string_view name = reader_.attribute("name").value_or("");
    // Does not expand entities: no interface or disk has a name that needs one.
    bool is_plain = !name.empty() && name.find('&') == name.npos;
    if (reader_.name() == "object" && is_named && is_plain) device->names.emplace_back(name);
    return children(&DocumentReader::os_device, device);
  }

  std::optional<uint64_t> number(const char* name) const {
    return parse_number(reader_.attribute(name).value_or(""));
  }

  bool core_kind() {
    auto cpus = parse_bitmap<CpuTag>(reader_.attribute("cpuset").value_or(""));
    if (!cpus) return fail("a cpukind has no cpuset such as \"0x0000000f\"");
    CoreFacts& facts = xml_.cores.emplace_back();
    facts.cpus = *std::move(cpus);
    facts.note("LinuxCapacity", reader_.attribute("forced_efficiency").value_or(""));
    return children(&DocumentReader::core_info, &facts);
  }

  bool core_info(CoreFacts* facts) {
    facts->note(reader_.attribute("name").value_or(""), reader_.attribute("value").value_or(""));
    return skip_element();
  }

  // Later versions of hwloc have attributes of their own, and users add some.
  bool memory_attribute() {
    std::string name(reader_.attribute("name").value_or(""));
    return children(&DocumentReader::memory_value, static_cast<const std::string*>(&name));
  }

  bool memory_value(const std::string* name) {
    auto node = node_of_index_.find(number("target_obj_gp_index").value_or(UINT64_MAX));
    if (reader_.attribute("target_obj_type") == "NUMANode" && node != node_of_index_.end()) {
      auto facts = std::ranges::find(xml_.memory, node->second, &MemoryFacts::node);
      facts->note(*name, reader_.attribute("value").value_or(""));
    }
    return skip_element();
  }

  bool distances() {
    bool is_by_id = reader_.attribute("indexing") == "os";
    std::optional<uint64_t> n = number("nbobjs"), kind = number("kind");
    Distances found{kind.value_or(0), {}, {}};
    if (!matrix(&found.nodes, &found.values)) return false;
    std::set<uint64_t> nodes(found.nodes.begin(), found.nodes.end());
    bool is_of_nodes = std::ranges::all_of(nodes, [&](uint64_t id) {
      return id <= NodeSet::kMaxId && seen_nodes_.contains(static_cast<int>(id));
    });
    size_t size = found.nodes.size();
    if (!is_by_id || !kind || n != size || nodes.size() != size || !is_of_nodes ||
        found.values.size() != size * size) {
      return fail("the distances are not a square of values between NUMA nodes");
    }
    // hwloc has no matrix of one node.
    if (size >= 2) distances_.push_back(std::move(found));
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

  void add_distances() {
    for (uint64_t from : {kFromOs, kFromUser}) {
      auto found = std::ranges::find_if(distances_, [&](const Distances& matrix) {
        return (matrix.kind & from) != 0 && (matrix.kind & kMeansLatency) != 0;
      });
      if (found == distances_.end() || found->nodes.size() != xml_.nodes.size()) continue;
      auto rows = rows_by_id(*found);
      if (rows.empty()) continue;
      for (NodeInfo& node : xml_.nodes) node.distances = rows[node.node];
      return;
    }
  }

  XmlReader reader_;
  HwlocXml xml_;
  std::vector<HugepagePool> page_types_;
  std::vector<Distances> distances_;
  std::map<uint64_t, int> node_of_index_;
  CpuSet seen_cpus_;
  NodeSet seen_nodes_;
  std::set<std::string> seen_devices_;
  std::string_view dma_type_;
  bool seen_root_ = false;
};

}  // namespace

Result<HwlocXml> read_hwloc_xml(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::kHwloc, "hwloc XML: the document has " + std::to_string(text.size()) +
                                        " bytes; at most " + std::to_string(kMaxBytes) + " are read"};
  }
  // No XML contains one.
  if (text.find('\0') != text.npos) {
    return Error{ErrorCode::kHwloc,
                 "hwloc XML: the document has a NUL byte; expected the text itself, not a file's name"};
  }
  return DocumentReader(text).run();
}

}  // namespace numalign
