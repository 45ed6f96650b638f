#include "platform/discovery/hwloc_discovery.h"

#include <fcntl.h>
#include <hwloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/core_kinds.h"
#include "core/id_list.h"
#include "core/machine_tree.h"
#include "platform/discovery/hwloc_xml.h"
#include "platform/discovery/linux_memory.h"
#include "platform/discovery/machine_file.h"
#include "platform/discovery/pci_devices.h"
#include "platform/discovery/synthetic_text.h"
#include "platform/discovery/sysfs.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"
#include "platform/threads/affinity.h"

// HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING and HWLOC_TOPOLOGY_FLAG_NO_DISTANCES.
static_assert(HWLOC_API_VERSION >= 0x00020800, "hwloc 2.8 or newer is needed");

namespace numalign {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

constexpr const char* kSyntheticExample = "\"package:2 [numa(memory=64GB)] l3:2 core:8 pu:2\"";

Error hwloc_error(std::string message) { return {ErrorCode::kHwloc, std::move(message)}; }

Error synthetic_error(const std::string& text, const std::string& what) {
  return hwloc_error("hwloc synthetic description " + excerpt(text) + ": " + what + "; a valid one is " +
                     kSyntheticExample);
}

// ---- Loading

std::optional<Error> set_synthetic(hwloc_topology_t topology, const std::string& text) {
  if (auto what = check_synthetic(text)) return synthetic_error(text, *what);
  if (hwloc_topology_set_synthetic(topology, text.c_str()) == 0) return std::nullopt;
  return synthetic_error(text,
                         "hwloc does not understand it (levels are type:count from the whole to its parts, "
                         "ending with pu:count)");
}

// Skips caches other than L3, which cost time. Skips I/O too: hwloc would walk all of sysfs and
// read the configuration space of every PCI device, which takes four times as long as everything
// else.
void keep_what_is_read(hwloc_topology_t topology, bool is_described) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE}) {
    hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  // A description may attach memory to any cache.
  if (is_described) hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Groups carry the NUMA nodes that match no package or die. hwloc refuses KEEP_ALL for them.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
}

unsigned long load_flags(bool is_machine) {
  unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
  if (is_machine) {
    // The x86 backend would move the calling thread over every CPU, even granted ones; sysfs has
    // all that is read here. Distances come from sysfs too: hwloc would also group nodes by them,
    // and complain if groups clash.
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES;
  }
  return flags;
}

// What hwloc reads from the environment but not for this machine as it is loaded here: without I/O,
// distances and attributes of memory, and with kinds of cores ranked here.
constexpr std::string_view kWithoutEffect[] = {
    "HWLOC_HIDE_ERRORS",
    "HWLOC_DEBUG_CHECK",
    "HWLOC_DONT_ADD_VERSION_INFO",
    "HWLOC_USE_NUMA_DISTANCES",
    "HWLOC_PCI_*",
    "HWLOC_GROUPING*",
    "HWLOC_CPUKINDS_RANKING",
    "HWLOC_MEMTIERS_*",
    "HWLOC_LIBXML*",
    "HWLOC_XML_*",
    "HWLOC_PLUGINS_*",
    "HWLOC_COMPONENTS_VERBOSE",
    "HWLOC_SYNTHETIC_VERBOSE",
};

bool is_without_effect(std::string_view name) {
  return std::ranges::any_of(kWithoutEffect, [&](std::string_view known) {
    return known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
  });
}

// The environment belongs to the host process, so that it is not changed, and hwloc has no call to
// ignore it. Unknown variables count: newer versions of hwloc have more.
std::optional<Error> check_environment() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; variable++) {
    std::string_view text = *variable;
    std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("HWLOC_") || is_without_effect(name)) continue;
    return hwloc_error("the environment has " + excerpt(std::string(text)) +
                       ", which can replace this machine by another: unset " + std::string(name) +
                       ", or discover the other machine by its XML or synthetic description");
  }
  return std::nullopt;
}

// hwloc takes a file that it cannot open for a missing one, and would describe another machine.
// These are more than discovery opens at a time.
constexpr size_t kFilesAtOnce = 8;

// Whether poll(2) finds that many free among the next descriptors, of which `file` is the first.
bool has_free_descriptors(const UniqueFd& file) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  std::array<pollfd, 64> next;
  const auto first = static_cast<rlim_t>(file.get());
  const size_t count = std::min<rlim_t>(next.size(), limit.rlim_cur - std::min(first, limit.rlim_cur));
  for (size_t i = 0; i < count; i++) next[i] = {file.get() + static_cast<int>(i), 0, 0};
  if (poll(next.data(), count, 0) < 0) return false;
  const auto is_free = [](const pollfd& each) { return (each.revents & POLLNVAL) != 0; };
  return std::count_if(next.begin(), next.begin() + count, is_free) + size_t{1} >= kFilesAtOnce;
}

std::optional<Error> check_open_files() {
  std::array<UniqueFd, kFilesAtOnce> files;
  for (UniqueFd& file : files) {
    file = UniqueFd(open("/", O_PATH | O_CLOEXEC));
    if (!file.valid()) return syscall_error("open", "cannot open the files that describe this machine");
    if (has_free_descriptors(file)) break;
  }
  return std::nullopt;
}

// `synthetic`: nullopt for this machine.
Result<HwlocTopology> load(const std::optional<std::string>& synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return hwloc_error("hwloc_topology_init() failed");
  HwlocTopology topology(raw);
  keep_what_is_read(raw, synthetic.has_value());
  hwloc_topology_set_flags(raw, load_flags(!synthetic));
  if (synthetic) {
    if (auto error = set_synthetic(raw, *synthetic)) return *error;
  }
  if (hwloc_topology_load(raw) != 0) {
    std::string why = std::string(": ") + std::strerror(errno);
    return synthetic ? synthetic_error(*synthetic, "hwloc_topology_load() refuses it" + why)
                     : hwloc_error("hwloc_topology_load() cannot read this machine" + why);
  }
  return topology;
}

// ---- What only Linux reports

// Node by CPU id. hwloc knows which nodes are near a CPU; only Linux knows the CPU's own node.
using NodeOfCpu = std::map<int, int>;

NodeOfCpu read_node_of_cpu(const std::vector<NodeInfo>& nodes) {
  NodeOfCpu node_of;
  for (const NodeInfo& node : nodes) {
    read_cpu_list(node_file(node.node, "cpulist")).for_each([&](int cpu) { node_of[cpu] = node.node; });
  }
  return node_of;
}

// ---- What hwloc reports

#if HWLOC_API_VERSION < 0x00030000
std::vector<HugepagePool> hugepages_of(hwloc_obj_t node, bool) {
  std::vector<HugepagePool> pools;
  // hwloc sorts by size; the first is the base page.
  for (unsigned i = 1; i < node->attr->numanode.page_types_len; i++) {
    const auto& page = node->attr->numanode.page_types[i];
    pools.push_back({page.size, page.count});
  }
  return pools;
}
#else
// hwloc 3 counts no pages.
std::vector<HugepagePool> hugepages_of(hwloc_obj_t node, bool is_machine) {
  if (!is_machine) return {};
  int id = static_cast<int>(node->os_index);
  std::vector<HugepagePool> pools = read_hugepages("/sys/devices/system/" + node_file(id, "hugepages"));
  // A kernel without NUMA has no folders of nodes.
  return pools.empty() && id == 0 ? read_hugepages("/sys/kernel/mm/hugepages") : pools;
}
#endif

Result<std::vector<NodeInfo>> nodes_in(hwloc_topology_t topology, bool is_machine) {
  std::vector<NodeInfo> nodes;
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
    if (node->os_index > NodeSet::kMaxId) {
      return hwloc_error("NUMA node id " + std::to_string(node->os_index) + " is above " +
                         std::to_string(NodeSet::kMaxId));
    }
    // MemTotal of the node, with hugepages, if read from Linux.
    nodes.push_back({static_cast<int>(node->os_index),
                     node->attr->numanode.local_memory,
                     hugepages_of(node, is_machine),
                     {}});
  }
  std::ranges::sort(nodes, {}, &NodeInfo::node);
  return nodes;
}

NodeSet nodes_of(const std::vector<CpuInfo>& cpus) {
  NodeSet nodes;
  for (const CpuInfo& cpu : cpus) nodes.insert(cpu.node);
  return nodes;
}

// Memory that only Linux knows, and what it is. Few machines have nodes without CPUs.
void add_linux_memory(std::vector<NodeInfo>& nodes, const std::vector<CpuInfo>& cpus) {
  NodeSet gpu_nodes = read_gpu_nodes();
  add_gpu_nodes(nodes, gpu_nodes);
  add_distances(nodes, read_node_list("online"));
  NodeSet with_cpus = nodes_of(cpus);
  if (static_cast<size_t>(with_cpus.size()) == nodes.size()) return;
  assign_tiers(nodes, with_cpus, read_memory_facts(nodes, gpu_nodes));
}

MachineTree::Kind kind_of(hwloc_obj_type_t type) {
  switch (type) {
    case HWLOC_OBJ_PACKAGE:
      return MachineTree::Kind::kPackage;
    case HWLOC_OBJ_DIE:
      return MachineTree::Kind::kDie;
    case HWLOC_OBJ_L3CACHE:
      return MachineTree::Kind::kL3Cache;
    case HWLOC_OBJ_CORE:
      return MachineTree::Kind::kCore;
    case HWLOC_OBJ_PU:
      return MachineTree::Kind::kPu;
    default:
      return MachineTree::Kind::kOther;
  }
}

// Attaches the memory of `from`, even below memory-side caches.
void attach_memory(hwloc_obj_t from, int object, MachineTree& tree) {
  for (hwloc_obj_t child = from->memory_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type == HWLOC_OBJ_NUMANODE) {
      tree.attach(object, static_cast<int>(child->os_index),
                  is_ordinary_memory(child->subtype ? child->subtype : ""));
    }
    attach_memory(child, object, tree);
  }
}

void add_to(MachineTree& tree, hwloc_obj_t from, int parent) {
  bool is_known = from->os_index != HWLOC_UNKNOWN_INDEX;
  int object = tree.add(kind_of(from->type), parent, is_known ? std::optional(from->os_index) : std::nullopt);
  attach_memory(from, object, tree);
  for (hwloc_obj_t child = from->first_child; child != nullptr; child = child->next_sibling) {
    add_to(tree, child, object);
  }
}

MachineTree tree_of(hwloc_topology_t topology) {
  MachineTree tree;
  add_to(tree, hwloc_get_root_obj(topology), MachineTree::kNoParent);
  return tree;
}

// ---- Kinds of cores

#if HWLOC_API_VERSION < 0x00030000
bool read_core_kind(hwloc_topology_t topology, unsigned kind, hwloc_bitmap_t cpus, CoreFacts& facts) {
  unsigned count = 0;
  hwloc_info_s* infos = nullptr;
  if (hwloc_cpukinds_get_info(topology, kind, cpus, nullptr, &count, &infos, 0) != 0) return false;
  for (unsigned i = 0; i < count; i++) facts.note(infos[i].name, infos[i].value);
  return true;
}
#else
bool read_core_kind(hwloc_topology_t topology, unsigned kind, hwloc_bitmap_t cpus, CoreFacts& facts) {
  hwloc_infos_s* infos = nullptr;
  if (hwloc_cpukinds_get_info(topology, kind, cpus, nullptr, &infos, 0) != 0) return false;
  for (unsigned i = 0; i < infos->count; i++) facts.note(infos->array[i].name, infos->array[i].value);
  return true;
}
#endif

// The facts of each type of core in turn, as Linux lists them: not every hwloc reads these files. Low
// power first: they are small cores too.
std::vector<CoreFacts> by_type(const std::vector<CoreFacts>& all) {
  std::vector<CoreFacts> split;
  for (CoreFacts facts : all) {
    for (const auto& [type, path] : {std::pair("IntelLowPower", "../cpu_lowpower/cpus"),
                                     {"IntelCore", "../cpu_core/cpus"},
                                     {"IntelAtom", "../cpu_atom/cpus"}}) {
      const CpuSet listed = read_cpu_list(path);
      if (!listed.intersects(facts.cpus)) continue;
      CoreFacts& part = split.emplace_back(facts);
      part.cpus &= listed;
      part.note("CoreType", type);
      facts.cpus -= listed;
    }
    if (!facts.cpus.empty()) split.push_back(facts);
  }
  return split;
}

// hwloc ranks them too, but takes small differences for kinds, and says nothing of Linux's capacity
// before version 2.10.
std::vector<CoreFacts> read_core_facts(hwloc_topology_t topology) {
  int count = hwloc_cpukinds_get_nr(topology, 0);
  std::vector<CoreFacts> kinds;
  std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, void (*)(hwloc_bitmap_t)> cpus(hwloc_bitmap_alloc(),
                                                                                        hwloc_bitmap_free);
  const auto add_cpus = [](hwloc_const_bitmap_t set, CpuSet& to) {
    for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
      if (cpu <= CpuSet::kMaxId) to.insert(cpu);
    }
  };
  if (count < 2) add_cpus(hwloc_topology_get_topology_cpuset(topology), kinds.emplace_back().cpus);
  for (int i = 0; count > 1 && i < count; i++) {
    CoreFacts& facts = kinds.emplace_back();
    if (!read_core_kind(topology, static_cast<unsigned>(i), cpus.get(), facts)) return {};
    add_cpus(cpus.get(), facts.cpus);
    std::string capacity = "cpu/cpu" + std::to_string(facts.cpus.first()) + "/cpu_capacity";
    facts.note("LinuxCapacity", read_sysfs(capacity).value_or(""));
  }
  return by_type(kinds);
}

// ---- PCI devices

// The firmware may name a node that has nothing else and is not online.
void forget_unknown_nodes(std::vector<PciDevice>& devices, const std::vector<NodeInfo>& nodes) {
  for (PciDevice& device : devices) {
    std::erase_if(device.nodes,
                  [&](int node) { return std::ranges::find(nodes, node, &NodeInfo::node) == nodes.end(); });
  }
}

// The nodes of the CPUs near each device; unknown if these are all CPUs of several nodes.
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

// ---- The three sources

CpuSet cpu_ids(const std::vector<CpuInfo>& cpus) {
  CpuSet ids;
  for (const CpuInfo& cpu : cpus) ids.insert(cpu.cpu);
  return ids;
}

// CPUs and NUMA nodes from hwloc; all CPUs are possible and allowed. `synthetic`: nullopt for this
// machine.
Result<TopologySpec> read_by_hwloc(const std::optional<std::string>& synthetic) {
  Result<HwlocTopology> loaded = load(synthetic);
  if (!loaded.ok()) return loaded.error();
  HwlocTopology topology = std::move(loaded).value();
  Result<std::vector<NodeInfo>> nodes = nodes_in(topology.get(), !synthetic);
  if (!nodes.ok()) return nodes.error();
  NodeOfCpu node_of_cpu = synthetic ? NodeOfCpu() : read_node_of_cpu(nodes.value());
  Result<std::vector<CpuInfo>> cpus = tree_of(topology.get()).cpus(node_of_cpu);
  if (!cpus.ok()) return cpus.error();
  CpuSet all = cpu_ids(cpus.value());
  std::vector<CoreFacts> facts = synthetic ? std::vector<CoreFacts>() : read_core_facts(topology.get());
  return TopologySpec{with_kinds(std::move(cpus).value(), facts), std::move(nodes).value(), {}, all, {}, all};
}

// Those of the cpuset of this thread. One that may run on all of them shows that; else the limit changes
// the mask of a thread.
Result<CpuSet> allowed_among(const CpuSet& online) {
  Result<CpuSet> mask = get_affinity(0);
  if (mask.ok() && online.is_subset_of(mask.value())) return online;
  Result<CpuSet> limit = std::async(std::launch::async, cpuset_limit).get();
  return limit.ok() ? limit.value() & online : limit;
}

NodeSet node_ids(const std::vector<NodeInfo>& nodes) {
  NodeSet ids;
  for (const NodeInfo& node : nodes) ids.insert(node.node);
  return ids;
}

// hwloc reads some fifteen files for each CPU. What it found stays true while the mark does; memory and
// hugepages are read now.
Result<TopologySpec> read_machine() {
  const auto mark_now = [] { return machine_mark(reinterpret_cast<const void*>(&hwloc_topology_load)); };
  const std::optional<std::string> mark = mark_now();
  std::optional<MachineParts> known;
  if (mark) known = read_machine_file(kMachineFile, *mark);
  if (known) {
    std::optional<std::vector<NodeInfo>> nodes = read_nodes(known->nodes);
    CpuSet all = cpu_ids(known->cpus);
    if (nodes) return TopologySpec{std::move(known->cpus), std::move(*nodes), {}, all, {}, all};
  }
  Result<TopologySpec> found = read_by_hwloc(std::nullopt);
  if (!found.ok() || !mark) return found;
  // A fault of this reading must not be that of all processes: only what Linux confirms is kept, of CPUs and
  // memory, and of a machine that has not changed meanwhile.
  const MachineParts parts{found.value().cpus, node_ids(found.value().nodes)};
  if (!check_open_files() && read_nodes(parts.nodes) == found.value().nodes && is_as_linux_says(parts) &&
      mark_now() == mark)
    write_machine_file(kMachineFile, *mark, parts);
  return found;
}

Result<TopologySpec> discover_machine(bool with_devices) {
  if (auto error = check_environment()) return *error;
  if (auto error = check_open_files()) return *error;
  // Reads the devices on another CPU meanwhile; hwloc takes twice as long.
  std::future<std::vector<PciDevice>> devices;
  if (with_devices) devices = std::async(std::launch::async, [] { return read_pci_devices("/sys"); });
  Result<TopologySpec> read = read_machine();
  if (!read.ok()) return read.error();
  TopologySpec spec = std::move(read).value();
  CpuSet online = spec.possible;
  spec.possible = online | read_cpu_list("cpu/possible");
  spec.isolated = read_cpu_list("cpu/isolated");
  add_linux_memory(spec.nodes, spec.cpus);
  Result<CpuSet> allowed = allowed_among(online);
  if (!allowed.ok()) return allowed.error();
  spec.allowed = std::move(allowed).value();
  if (devices.valid()) spec.devices = devices.get();
  if (auto error = check_open_files()) return *error;
  spec.has_devices = with_devices;
  forget_unknown_nodes(spec.devices, spec.nodes);
  return spec;
}

Result<TopologySpec> discover_synthetic(const std::string& text) {
  Result<TopologySpec> read = read_by_hwloc(text);
  if (!read.ok()) return read.error();
  TopologySpec spec = std::move(read).value();
  // Without memory in the description, hwloc gives every node a gigabyte.
  if (text.find("memory=") == text.npos) {
    for (NodeInfo& node : spec.nodes) node.memory_bytes = 0;
  }
  return spec;
}

Result<TopologySpec> discover_xml(const std::string& text) {
  Result<HwlocXml> read = read_hwloc_xml(text);
  if (!read.ok()) return read.error();
  HwlocXml xml = std::move(read).value();
  Result<std::vector<CpuInfo>> cpus = xml.tree.cpus({});
  if (!cpus.ok()) return cpus.error();
  CpuSet all = cpu_ids(cpus.value());
  CpuSet allowed = all & xml.allowed;
  assign_tiers(xml.nodes, nodes_of(cpus.value()), xml.memory);
  std::vector<PciDevice> devices = place_devices(xml.devices, cpus.value());
  return TopologySpec{with_kinds(std::move(cpus).value(), xml.cores),
                      std::move(xml.nodes),
                      std::move(devices),
                      all,
                      {},
                      allowed.empty() ? all : allowed};
}

Result<TopologySpec> discover_in(DiscoverySource source, const std::string& text) {
  switch (source) {
    case DiscoverySource::kXml:
      return discover_xml(text);
    case DiscoverySource::kSynthetic:
      return discover_synthetic(text);
    case DiscoverySource::kBareMachine:
      return discover_machine(false);
    case DiscoverySource::kMachine:
      break;
  }
  return discover_machine(true);
}

}  // namespace

Result<TopologySpec> discover(DiscoverySource source, const std::string& text) {
  Result<TopologySpec> spec = discover_in(source, text);
  if (!spec.ok()) return spec;
  std::optional<std::string> what = memory_error(spec.value().nodes);
  return what ? hwloc_error(*what) : std::move(spec);
}

std::vector<PciDevice> read_devices(const std::vector<NodeInfo>& nodes) {
  std::vector<PciDevice> devices = read_pci_devices("/sys");
  forget_unknown_nodes(devices, nodes);
  return devices;
}

}  // namespace numalign
