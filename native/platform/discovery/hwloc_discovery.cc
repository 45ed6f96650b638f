#include "platform/discovery/hwloc_discovery.h"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/id_list.h"
#include "platform/discovery/hwloc_xml.h"
#include "platform/discovery/pci_devices.h"
#include "platform/threads/affinity.h"

// HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING and HWLOC_TOPOLOGY_FLAG_NO_DISTANCES.
static_assert(HWLOC_API_VERSION >= 0x00020800, "hwloc 2.8 or newer is needed");

namespace numalign {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

// As many CPUs as Linux supports on any machine (NR_CPUS). hwloc inserts the parts of one object in quadratic
// time: 1,024 take a tenth of a second, 8,192 take ten.
constexpr unsigned long long kMaxSyntheticCpus = 8192;
constexpr unsigned long long kMaxSyntheticParts = 1024;
constexpr const char* kSyntheticExample = "\"package:2 [numa(memory=64GB)] l3:2 core:8 pu:2\"";

Error hwloc_error(std::string message) { return {ErrorCode::kHwloc, std::move(message)}; }

bool is_plain_ascii(char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; }

std::string excerpt(std::string_view text) {
  constexpr size_t kMaxLength = 80;
  std::string shown(text.substr(0, kMaxLength));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return "\"" + shown + (text.size() > kMaxLength ? "...\"" : "\"");
}

// ---- synthetic descriptions: what hwloc would take literally, whatever it costs ----

Error synthetic_error(const std::string& text, const std::string& what) {
  return hwloc_error("hwloc synthetic description " + excerpt(text) + ": " + what + "; a valid one is " +
                     kSyntheticExample);
}

// The text without "(...)" and "[...]": the levels that multiply.
std::string levels_of(std::string_view text) {
  std::string levels;
  char closing = '\0';
  for (char c : text) {
    if (closing == '\0' && (c == '(' || c == '[')) closing = c == '(' ? ')' : ']';
    if (closing == '\0') levels += c;
    if (c == closing) closing = '\0';
  }
  return levels;
}

// The product of the counts, read as hwloc reads them: a bare number, or what follows the next ':', in C's
// notation. Once too large, some number above the limit. What is no number is left for hwloc to refuse.
unsigned long long count_synthetic_cpus(std::string_view text) {
  std::string levels = levels_of(text);
  unsigned long long cpus = 1;
  for (const char* at = levels.c_str(); cpus <= kMaxSyntheticCpus;) {
    at += std::strspn(at, " \n\t");
    bool is_bare = *at >= '0' && *at <= '9';
    const char* number = is_bare ? at : std::strchr(at, ':');
    if (number == nullptr) break;
    if (!is_bare) number++;
    char* end = nullptr;
    unsigned long long count = std::strtoull(number, &end, 0);
    if (count > kMaxSyntheticParts) return kMaxSyntheticCpus + 1;
    if (count > 0) cpus *= count;
    at = end;
  }
  return cpus;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Whether a level may have this name. hwloc compares beginnings only, and stops the process by an assertion
// at kinds that are no levels, such as MemCache.
bool is_level_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr const char* kNames[] = {"machine", "package", "socket", "die",      "core",
                                    "pu",      "numa",    "node",   "numanode", "group"};
  if (std::ranges::find(kNames, lower) != std::end(kNames)) return true;
  if (lower.starts_with("group")) return is_number(std::string_view(lower).substr(5));
  bool is_cache = lower.size() >= 2 && lower[0] == 'l' && lower[1] >= '1' && lower[1] <= '5';
  if (!is_cache) return false;
  std::string_view kind = std::string_view(lower).substr(2);
  if (kind.ends_with("cache")) kind.remove_suffix(5);
  return kind.empty() || kind == "u" || kind == "d" || kind == "i";
}

// Levels are "name:count" or a bare count; in brackets stand NUMA nodes alone.
std::optional<std::string> check_synthetic_levels(std::string_view text) {
  std::string levels = levels_of(text);
  for (size_t at = 0; (at = levels.find_first_not_of(" \n\t", at)) != levels.npos;) {
    std::string_view level(levels.data() + at,
                           std::min(levels.find_first_of(" \n\t", at), levels.size()) - at);
    at += level.size();
    if (is_number(level)) continue;
    size_t colon = std::min(level.find(':'), level.size());
    if (colon == level.size() || !is_number(level.substr(colon + 1)) ||
        !is_level_name(level.substr(0, colon))) {
      return excerpt(level) +
             " is no level (levels are type:count from the whole to its parts, ending with pu:count)";
    }
  }
  for (size_t at = 0; (at = text.find('[', at)) != text.npos;) {
    at++;
    std::string_view name = text.substr(at, std::min(text.find_first_of("(] ", at), text.size()) - at);
    if (name != "numa" && name != "numanode" && name != "NUMANode") {
      return excerpt(name) + " cannot be attached in brackets; only numa can";
    }
  }
  return std::nullopt;
}

// Plain "indexes=0,2,1,3" lists, which hwloc takes as they are: ids beyond the limit would become bitmaps of
// that length, repeated ones contradict each other.
std::optional<std::string> check_index_list(std::string_view list) {
  std::set<unsigned long> seen;
  const char* at = list.data();
  const char* stop = at + list.size();
  while (at < stop) {
    unsigned long id = 0;
    auto [end, code] = std::from_chars(at, stop, id);
    if (code == std::errc::invalid_argument) return std::nullopt;  // for hwloc to refuse
    if (code != std::errc() || id > CpuSet::kMaxId)
      return "an index is above " + std::to_string(CpuSet::kMaxId);
    if (!seen.insert(id).second) return "index " + std::to_string(id) + " is given twice";
    at = end + 1;
  }
  return std::nullopt;
}

// "indexes=2*2:1*2" loops (step*count), which hwloc only checks for the width that they make together: where
// two overlap, ids repeat.
std::optional<std::string> check_index_loops(std::string_view loops) {
  std::map<unsigned long, unsigned long> count_of_step;
  const char* stop = loops.data() + loops.size();
  for (const char* at = loops.data(); at < stop; at++) {
    unsigned long step = 0, count = 0;
    auto [star, step_code] = std::from_chars(at, stop, step);
    if (step_code != std::errc() || star == stop || *star != '*') return std::nullopt;  // for hwloc to refuse
    auto [end, count_code] = std::from_chars(star + 1, stop, count);
    if (count_code != std::errc()) return std::nullopt;
    bool fits = step >= 1 && count >= 1 && step <= CpuSet::kMaxId && count <= CpuSet::kMaxId;
    if (!fits || !count_of_step.emplace(step, count).second) return "the loops of its indexes overlap";
    at = end;
  }
  unsigned long covered = 1;
  for (auto [step, count] : count_of_step) {
    if (step % covered != 0) return "the loops of its indexes overlap";
    covered = step * count;
  }
  return std::nullopt;
}

std::optional<std::string> check_synthetic_indexes(std::string_view text) {
  constexpr std::string_view kKey = "indexes=";
  for (size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at)) {
    at += kKey.size();
    std::string_view list = text.substr(at, text.find_first_of(" )", at) - at);
    bool is_plain = list.find_first_not_of("0123456789,") == list.npos;
    if (auto what = is_plain ? check_index_list(list) : check_index_loops(list)) return what;
  }
  return std::nullopt;
}

std::optional<Error> set_synthetic(hwloc_topology_t topology, const std::string& text) {
  // hwloc 2.9 reads beyond its type names on a byte of 0xE0.
  if (!std::ranges::all_of(text, is_plain_ascii))
    return synthetic_error(text, "it holds a character that is not ASCII text");
  if (text.find_first_not_of(" \n\t") == text.npos) return synthetic_error(text, "it is empty");
  if (auto what = check_synthetic_levels(text)) return synthetic_error(text, *what);
  if (count_synthetic_cpus(text) > kMaxSyntheticCpus) {
    return synthetic_error(text, "it has more than " + std::to_string(kMaxSyntheticCpus) +
                                     " CPUs, or more than " + std::to_string(kMaxSyntheticParts) +
                                     " parts in one level");
  }
  if (auto what = check_synthetic_indexes(text)) return synthetic_error(text, *what);
  if (hwloc_topology_set_synthetic(topology, text.c_str()) == 0) return std::nullopt;
  return synthetic_error(text,
                         "hwloc does not understand it (levels are type:count from the whole to its parts, "
                         "ending with pu:count)");
}

// ---- loading ----

// For a text that passed the checks here and that hwloc refuses all the same.
Error load_error(DiscoverySource source, const std::string& text, int error) {
  std::string why = std::string(": ") + std::strerror(error);
  switch (source) {
    case DiscoverySource::kXml:
      return hwloc_error("hwloc XML " + excerpt(text) + ": hwloc_topology_load() refuses it" + why +
                         "; expected a document as \"lstopo --of xml\" writes it");
    case DiscoverySource::kSynthetic:
      return synthetic_error(text, "hwloc_topology_load() refuses it" + why);
    case DiscoverySource::kMachine:
      break;
  }
  return hwloc_error("hwloc_topology_load() cannot read this machine" + why);
}

std::optional<Error> set_source(hwloc_topology_t topology, DiscoverySource source, const std::string& text) {
  if (source == DiscoverySource::kMachine) return std::nullopt;
  if (source == DiscoverySource::kSynthetic) return set_synthetic(topology, text);
  // The length counts the NUL: hwloc's own parser reads a C string.
  int length = static_cast<int>(text.size()) + 1;
  if (hwloc_topology_set_xmlbuffer(topology, text.c_str(), length) == 0) return std::nullopt;
  return load_error(source, text, errno);
}

// Caches other than L3 and the rest cost time and are not looked at. I/O neither: hwloc would walk all of
// sysfs and read the configuration space of every PCI device, for four times the time of everything else.
void keep_what_is_read(hwloc_topology_t topology) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE}) {
    hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  // Groups carry the NUMA nodes that match no package or die. KEEP_ALL is refused for them.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
}

unsigned long load_flags(DiscoverySource source) {
  unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                        HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (source == DiscoverySource::kMachine) {
    // The x86 backend would walk the calling thread over every CPU, granted ones too; sysfs says all that is
    // read here. Distances come from sysfs: hwloc would also group nodes by them, and complain where groups
    // clash.
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES;
  }
  return flags;
}

// An XML text has been through sanitize_hwloc_xml().
Result<HwlocTopology> load(DiscoverySource source, const std::string& text) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return hwloc_error("hwloc_topology_init() failed");
  HwlocTopology topology(raw);
  keep_what_is_read(raw);
  hwloc_topology_set_flags(raw, load_flags(source));
  if (auto error = set_source(raw, source, text)) return *error;
  if (hwloc_topology_load(raw) != 0) return load_error(source, text, errno);
  if (source == DiscoverySource::kMachine && !hwloc_topology_is_thissystem(raw)) {
    return hwloc_error(
        "the environment replaces this machine: unset HWLOC_XMLFILE, HWLOC_SYNTHETIC, HWLOC_FSROOT and "
        "HWLOC_COMPONENTS, or "
        "discover the other machine by its XML or synthetic description");
  }
  return topology;
}

// ---- what Linux says beside hwloc ----

// The first line of a file below /sys/devices/system, without its end; nothing where it cannot be read.
std::optional<std::string> read_sysfs(const std::string& name) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(("/sys/devices/system/" + name).c_str(), "re"),
                                             std::fclose);
  if (!file) return std::nullopt;
  std::string line;
  for (int c = std::fgetc(file.get()); c != EOF && c != '\n'; c = std::fgetc(file.get()))
    line += static_cast<char>(c);
  return line;
}

CpuSet read_cpu_list(const std::string& name) {
  std::optional<std::string> line = read_sysfs(name);
  if (!line) return {};
  Result<CpuSet> cpus = parse_id_list<CpuTag>(*line);
  return cpus.ok() ? cpus.value() : CpuSet();
}

std::string node_file(int node, const char* name) { return "node/node" + std::to_string(node) + "/" + name; }

// "10 21": to each online node, ascending.
std::vector<uint32_t> read_distances(int node) {
  std::vector<uint32_t> distances;
  std::string line = read_sysfs(node_file(node, "distance")).value_or("");
  const char* at = line.c_str();
  for (char* end = nullptr;; at = end) {
    unsigned long distance = std::strtoul(at, &end, 10);
    if (end == at) return distances;
    distances.push_back(static_cast<uint32_t>(distance));
  }
}

// Node by CPU id. hwloc knows which nodes are near a CPU; only Linux knows which one is the CPU's own.
using NodeOfCpu = std::map<int, int>;

NodeOfCpu read_node_of_cpu(const std::vector<NodeInfo>& nodes) {
  NodeOfCpu node_of;
  for (const NodeInfo& node : nodes) {
    read_cpu_list(node_file(node.node, "cpulist")).for_each([&](int cpu) { node_of[cpu] = node.node; });
  }
  return node_of;
}

// ---- NUMA nodes ----

std::vector<HugepagePool> hugepages_of(hwloc_obj_t node) {
  std::vector<HugepagePool> pools;
  // hwloc sorts by size; the first is the base page.
  for (unsigned i = 1; i < node->attr->numanode.page_types_len; i++) {
    const auto& page = node->attr->numanode.page_types[i];
    pools.push_back({page.size, page.count});
  }
  return pools;
}

Result<std::vector<NodeInfo>> read_nodes(hwloc_topology_t topology) {
  std::vector<NodeInfo> nodes;
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
    if (node->os_index > NodeSet::kMaxId) {
      return hwloc_error("NUMA node id " + std::to_string(node->os_index) + " is above " +
                         std::to_string(NodeSet::kMaxId));
    }
    // MemTotal of the node, hugepages included, where Linux is read.
    nodes.push_back(
        {static_cast<int>(node->os_index), node->attr->numanode.local_memory, hugepages_of(node), {}});
  }
  std::ranges::sort(nodes, {}, &NodeInfo::node);
  return nodes;
}

// One row by node id, each a list by ascending id; empty unless the matrix is whole.
std::map<int, std::vector<uint32_t>> rows_by_id(const hwloc_distances_s& matrix) {
  unsigned n = matrix.nbobjs;
  std::vector<unsigned> order(n);
  for (unsigned i = 0; i < n; i++) order[i] = i;
  std::ranges::sort(order, {}, [&](unsigned i) { return matrix.objs[i]->os_index; });
  std::map<int, std::vector<uint32_t>> rows;
  for (unsigned i : order) {
    std::vector<uint32_t>& row = rows[static_cast<int>(matrix.objs[i]->os_index)];
    for (unsigned j : order) {
      hwloc_uint64_t value = matrix.values[size_t{i} * n + j];
      if (value > UINT32_MAX) return {};
      row.push_back(static_cast<uint32_t>(value));
    }
  }
  return rows;
}

// The latencies between all nodes: those that the operating system reported before those that a user added.
void add_described_distances(hwloc_topology_t topology, std::vector<NodeInfo>& nodes) {
  for (unsigned long from : {HWLOC_DISTANCES_KIND_FROM_OS, HWLOC_DISTANCES_KIND_FROM_USER}) {
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    unsigned long kind = from | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
    int depth = HWLOC_TYPE_DEPTH_NUMANODE;
    if (hwloc_distances_get_by_depth(topology, depth, &count, &matrix, kind, 0) != 0 || count == 0) continue;
    if (matrix->nbobjs == nodes.size()) {
      auto rows = rows_by_id(*matrix);
      for (NodeInfo& node : nodes) node.distances = rows[node.node];
    }
    hwloc_distances_release(topology, matrix);
    if (!nodes[0].distances.empty()) return;
  }
}

void add_machine_distances(std::vector<NodeInfo>& nodes) {
  for (NodeInfo& node : nodes) {
    node.distances = read_distances(node.node);
    // A node that came or went since the load: unknown rather than shifted.
    if (node.distances.size() != nodes.size()) node.distances.clear();
  }
}

// ---- CPUs ----

// hwloc names the special kinds: HBM, MCDRAM, NVM, GPUMemory, CXL-DRAM.
bool is_ordinary_memory(hwloc_obj_t node) {
  return node->subtype == nullptr || std::strcmp(node->subtype, "DRAM") == 0;
}

// The first NUMA node attached to `object` itself, below memory-side caches too, that is ordinary memory if
// asked.
hwloc_obj_t attached_node(hwloc_obj_t object, bool ordinary) {
  for (hwloc_obj_t child = object->memory_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type == HWLOC_OBJ_NUMANODE && (!ordinary || is_ordinary_memory(child))) return child;
    if (hwloc_obj_t below = attached_node(child, ordinary)) return below;
  }
  return nullptr;
}

// The node of a CPU by its place: the nearest one upwards that is ordinary memory, else the nearest of any
// kind, else, for CPUs that no node is local to, the first node of the nearest ancestor that has some.
int nearest_node(hwloc_obj_t pu) {
  for (bool ordinary : {true, false}) {
    for (hwloc_obj_t object = pu; object != nullptr; object = object->parent) {
      if (hwloc_obj_t node = attached_node(object, ordinary)) return static_cast<int>(node->os_index);
    }
  }
  hwloc_obj_t object = pu;
  while (object->parent != nullptr && hwloc_bitmap_iszero(object->nodeset)) object = object->parent;
  return hwloc_bitmap_first(object->nodeset);
}

hwloc_obj_t ancestor(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t pu) {
  return hwloc_get_ancestor_obj_by_type(topology, type, pu);
}

// Ids for the objects of a type: by logical index, those of Linux if all objects have one and no two the
// same, else the logical index itself. One more at the end, that no object has, for the CPUs outside of any.
std::vector<int> ids_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<int> ids;
  std::set<unsigned> seen;
  bool usable = true;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object));) {
    usable = usable && object->os_index < INT_MAX / 2 && seen.insert(object->os_index).second;
    ids.push_back(static_cast<int>(object->os_index));
  }
  for (size_t i = 0; !usable && i < ids.size(); i++) ids[i] = static_cast<int>(i);
  ids.push_back(ids.empty() ? 0 : *std::ranges::max_element(ids) + 1);
  return ids;
}

int id_of(hwloc_obj_t object, const std::vector<int>& ids) {
  return object != nullptr ? ids[object->logical_index] : ids.back();
}

// Gives each distinct (L3, package) an id: the L3's own where it lies in one package, else one that no other
// has.
class L3Ids {
 public:
  explicit L3Ids(std::vector<int> ids) : ids_(std::move(ids)), next_(ids_.back()) {}

  int id(hwloc_obj_t l3, int package) {
    if (ids_.size() == 1) return package;  // no L3 on the machine
    int own = id_of(l3, ids_);
    auto [found, is_new] = by_place_.try_emplace({own, package}, own);
    if (is_new && !taken_.insert(own).second) found->second = ++next_;
    return found->second;
  }

 private:
  std::vector<int> ids_;
  int next_;
  std::map<std::pair<int, int>, int> by_place_;
  std::set<int> taken_;
};

std::vector<hwloc_obj_t> pus_by_id(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> pus;
  for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu));)
    pus.push_back(pu);
  std::ranges::sort(pus, {}, &hwloc_obj::os_index);
  return pus;
}

Result<std::vector<CpuInfo>> read_cpus(hwloc_topology_t topology, const NodeOfCpu& node_of_cpu) {
  std::vector<hwloc_obj_t> pus = pus_by_id(topology);
  if (pus.empty()) return hwloc_error("the machine has no CPU");
  if (pus.back()->os_index > CpuSet::kMaxId) {
    return hwloc_error("CPU id " + std::to_string(pus.back()->os_index) + " is above " +
                       std::to_string(CpuSet::kMaxId));
  }
  std::vector<int> package_ids = ids_of(topology, HWLOC_OBJ_PACKAGE);
  L3Ids l3_ids(ids_of(topology, HWLOC_OBJ_L3CACHE));
  // CPUs come in ascending order, so the first one seen is the lowest. The keys hold all that a core or die
  // must not span.
  std::map<std::tuple<hwloc_obj_t, int, int, int>, int> first_of_core;
  std::map<std::pair<hwloc_obj_t, int>, int> first_of_die;
  std::vector<CpuInfo> cpus;
  for (hwloc_obj_t pu : pus) {
    CpuInfo info{};
    info.cpu = static_cast<int>(pu->os_index);
    auto linux_node = node_of_cpu.find(info.cpu);
    info.node = linux_node != node_of_cpu.end() ? linux_node->second : nearest_node(pu);
    info.package = id_of(ancestor(topology, HWLOC_OBJ_PACKAGE, pu), package_ids);
    info.l3 = l3_ids.id(ancestor(topology, HWLOC_OBJ_L3CACHE, pu), info.package);
    hwloc_obj_t core = ancestor(topology, HWLOC_OBJ_CORE, pu);
    hwloc_obj_t core_or_pu = core != nullptr ? core : pu;
    info.core =
        first_of_core.try_emplace({core_or_pu, info.package, info.node, info.l3}, info.cpu).first->second;
    hwloc_obj_t die = ancestor(topology, HWLOC_OBJ_DIE, pu);
    info.die = first_of_die.try_emplace({die, info.package}, info.cpu).first->second;
    cpus.push_back(info);
  }
  return cpus;
}

// ---- PCI devices ----

std::vector<PciDevice> read_machine_devices(const std::vector<NodeInfo>& nodes) {
  std::vector<PciDevice> devices = read_pci_devices("/sys");
  for (PciDevice& device : devices) {
    // The firmware may name a node that has nothing else, and is not online.
    std::erase_if(device.nodes,
                  [&](int node) { return std::ranges::find(nodes, node, &NodeInfo::node) == nodes.end(); });
  }
  return devices;
}

// The nodes of the CPUs that devices are near; unknown where those are the CPUs of every one of several
// nodes.
std::vector<PciDevice> place_devices(const std::vector<HwlocXml::Device>& described,
                                     const std::vector<CpuInfo>& cpus) {
  std::set<int> all;
  for (const CpuInfo& cpu : cpus) all.insert(cpu.node);
  std::vector<PciDevice> devices;
  for (const HwlocXml::Device& device : described) {
    std::set<int> near;
    for (const CpuInfo& cpu : cpus) {
      if (device.cpus.contains(cpu.cpu)) near.insert(cpu.node);
    }
    PciDevice& placed = devices.emplace_back(device.pci);
    if (near != all || all.size() == 1) placed.nodes.assign(near.begin(), near.end());
  }
  return devices;
}

// ---- the whole ----

CpuSet cpu_ids(const std::vector<CpuInfo>& cpus) {
  CpuSet ids;
  for (const CpuInfo& cpu : cpus) ids.insert(cpu.cpu);
  return ids;
}

// The described CPUs without those that an XML's machine did not allow to whoever captured it.
CpuSet described_as_allowed(hwloc_topology_t topology, const CpuSet& online) {
  hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
  CpuSet result;
  online.for_each([&](int cpu) {
    if (hwloc_bitmap_isset(allowed, static_cast<unsigned>(cpu))) result.insert(cpu);
  });
  return result.empty() ? online : result;
}

std::optional<Error> describe_this_machine(TopologySpec& spec) {
  CpuSet online = cpu_ids(spec.cpus);
  spec.possible = online | read_cpu_list("cpu/possible");
  spec.isolated = read_cpu_list("cpu/isolated");
  Result<CpuSet> allowed = cpuset_limit(spec.possible);
  if (!allowed.ok()) return allowed.error();
  spec.allowed = allowed.value() & online;
  add_machine_distances(spec.nodes);
  return std::nullopt;
}

// hwloc gives every node of a synthetic machine a gigabyte where the description says nothing.
void forget_invented_memory(const std::string& synthetic, TopologySpec& spec) {
  if (synthetic.find("memory=") != synthetic.npos) return;
  for (NodeInfo& node : spec.nodes) node.memory_bytes = 0;
}

void describe_other_machine(hwloc_topology_t topology, TopologySpec& spec) {
  spec.possible = cpu_ids(spec.cpus);
  spec.allowed = described_as_allowed(topology, spec.possible);
  add_described_distances(topology, spec.nodes);
}

}  // namespace

Result<TopologySpec> discover(DiscoverySource source, const std::string& text) {
  std::optional<HwlocXml> xml;
  if (source == DiscoverySource::kXml) {
    Result<HwlocXml> sanitized = sanitize_hwloc_xml(text);
    if (!sanitized.ok()) return sanitized.error();
    xml = std::move(sanitized).value();
  }
  Result<HwlocTopology> loaded = load(source, xml ? xml->text : text);
  if (!loaded.ok()) return loaded.error();
  HwlocTopology topology = std::move(loaded).value();
  bool is_machine = source == DiscoverySource::kMachine;
  Result<std::vector<NodeInfo>> nodes = read_nodes(topology.get());
  if (!nodes.ok()) return nodes.error();
  Result<std::vector<CpuInfo>> cpus =
      read_cpus(topology.get(), is_machine ? read_node_of_cpu(nodes.value()) : NodeOfCpu());
  if (!cpus.ok()) return cpus.error();
  TopologySpec spec{std::move(cpus).value(), std::move(nodes).value(), {}, {}, {}, {}};
  if (is_machine) spec.devices = read_machine_devices(spec.nodes);
  if (xml) spec.devices = place_devices(xml->devices, spec.cpus);
  if (!is_machine) {
    describe_other_machine(topology.get(), spec);
    if (source == DiscoverySource::kSynthetic) forget_invented_memory(text, spec);
  } else if (auto error = describe_this_machine(spec)) {
    return *error;
  }
  return spec;
}

}  // namespace numalign
