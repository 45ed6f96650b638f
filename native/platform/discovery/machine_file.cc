#include "platform/discovery/machine_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string_view>

#include "core/id_list.h"
#include "platform/discovery/linux_memory.h"
#include "platform/discovery/sysfs.h"
#include "platform/files/code_files.h"
#include "platform/files/unique_fd.h"
#include "platform/threads/affinity.h"

namespace numalign {
namespace {

// Of a machine with the most CPUs.
constexpr off_t kMostBytes = 1 << 20;
const std::string kFolder = "/sys/devices/system/";

// What Linux lists, and what the frequencies depend on by which kinds of cores are told: a driver may be
// loaded later, and boosts switched off. Few machines have all of these.
constexpr const char* kFiles[] = {"cpu/online",
                                  "cpu/possible",
                                  "node/possible",
                                  "node/has_cpu",
                                  "node/has_memory",
                                  "node/has_normal_memory",
                                  "cpu/cpufreq/policy0/scaling_driver",
                                  "cpu/cpufreq/policy0/cpuinfo_max_freq",
                                  "cpu/cpufreq/boost",
                                  "cpu/intel_pstate/no_turbo",
                                  "cpu/amd_pstate/status"};

std::string file_of(int cpu, const char* name) { return "cpu/cpu" + std::to_string(cpu) + "/" + name; }

// The words of ELF notes are of four bytes.
size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

// The description of the note that names a build; empty if there is none.
std::span<const unsigned char> build_id_in(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const size_t name = sizeof note + padded(note.n_namesz);
    const size_t end = name + padded(note.n_descsz);
    if (end > notes.size()) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes.data() + sizeof note, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return notes.subspan(name, note.n_descsz);
    notes = notes.subspan(end);
  }
  return {};
}

struct BuildOf {
  uintptr_t address;
  std::string id;
};

// The build of the code that is loaded at an address, whatever its file is now; empty if it has no id.
std::string build_of(const void* address) {
  BuildOf build{reinterpret_cast<uintptr_t>(address), {}};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& sought = *static_cast<BuildOf*>(data);
    const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
    const bool has_it = std::ranges::any_of(headers, [&](const ElfW(Phdr) & part) {
      const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
      return part.p_type == PT_LOAD && sought.address >= begin && sought.address - begin < part.p_memsz;
    });
    if (!has_it) return 0;
    for (const ElfW(Phdr) & part : headers) {
      if (part.p_type != PT_NOTE) continue;
      const auto* notes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + part.p_vaddr);
      for (const unsigned char byte : build_id_in({notes, part.p_memsz})) {
        sought.id += "0123456789abcdef"[byte / 16];
        sought.id += "0123456789abcdef"[byte % 16];
      }
      if (!sought.id.empty()) break;
    }
    return 1;
  };
  dl_iterate_phdr(look, &build);
  return build.id;
}

// Others are mounted there in containers and tests.
bool is_folder_of_kernel(const std::string& path) {
  struct statfs system;
  return statfs(path.c_str(), &system) == 0 && system.f_type == SYSFS_MAGIC;
}

// True if something is mounted over a part of the folders, or that cannot be known.
bool is_covered() {
  std::ifstream mounts("/proc/self/mountinfo");
  bool is_known = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (point.starts_with(kFolder)) return true;
    is_known = true;
  }
  return !is_known;
}

// The names before Linux 5.3 are still there.
CpuSet read_cpus(int cpu, const char* name, const char* old_name) {
  CpuSet cpus = read_cpu_list(file_of(cpu, name));
  return cpus.empty() ? read_cpu_list(file_of(cpu, old_name)) : cpus;
}

// The CPUs that have the same in this member.
CpuSet with_same(const std::vector<CpuInfo>& cpus, const CpuInfo& one, int CpuInfo::*member) {
  CpuSet same;
  for (const CpuInfo& each : cpus) {
    if (each.*member == one.*member) same.insert(each.cpu);
  }
  return same;
}

bool has_its_core(const std::vector<CpuInfo>& cpus, const CpuInfo& one, const CpuSet& online) {
  const CpuSet core = read_cpus(one.cpu, "topology/core_cpus_list", "topology/thread_siblings_list") & online;
  return core == with_same(cpus, one, &CpuInfo::core) && one.core == core.first();
}

bool has_its_package(const std::vector<CpuInfo>& cpus, const CpuInfo& one, const CpuSet& online) {
  const CpuSet package = read_cpus(one.cpu, "topology/package_cpus_list", "topology/core_siblings_list");
  return (package & online) == with_same(cpus, one, &CpuInfo::package) &&
         read_sysfs(file_of(one.cpu, "topology/physical_package_id")) == std::to_string(one.package);
}

bool has_its_cache(const std::vector<CpuInfo>& cpus, const CpuInfo& one, const CpuSet& online) {
  const std::string cache = file_of(one.cpu, "cache/index3");
  struct stat s;
  if (stat((kFolder + cache).c_str(), &s) != 0) return true;
  return read_sysfs(cache + "/level") == "3" &&
         (read_cpu_list(cache + "/shared_cpu_list") & online) == with_same(cpus, one, &CpuInfo::l3);
}

}  // namespace

std::optional<std::string> machine_mark(const void* reader) {
#if defined(__x86_64__) || defined(__aarch64__)
  const std::string own = build_of(reinterpret_cast<const void*>(&machine_mark));
  const std::string other = build_of(reader);
  const std::optional<std::string> boot = read_first_line("/proc/sys/kernel/random/boot_id");
  const NodeSet nodes = read_node_list("online");
  if (own.empty() || other.empty() || !boot || nodes.empty()) return std::nullopt;
  if (!is_folder_of_kernel(kFolder + "cpu") || !is_folder_of_kernel(kFolder + "node")) return std::nullopt;
  std::string mark =
      "code " + own + "\nreader " + other + "\nboot " + *boot + "\nnode/online " + format_id_list(nodes);
  for (const char* file : kFiles) mark += "\n" + std::string(file) + " " + read_sysfs(file).value_or("-");
  nodes.for_each([&](int node) {
    const std::string cpus = node_file(node, "cpulist");
    mark += "\n" + cpus + " " + read_sysfs(cpus).value_or("-");
  });
  read_gpu_nodes().for_each([&](int node) { mark += "\ngpu node " + std::to_string(node); });
  return mark;
#else
  (void)reader;
  return std::nullopt;
#endif
}

bool is_as_linux_says(const MachineParts& machine) {
  if (is_covered()) return false;
  const CpuSet online = read_cpu_list("cpu/online");
  CpuSet found;
  for (const CpuInfo& each : machine.cpus) found.insert(each.cpu);
  return online == found && std::ranges::all_of(machine.cpus, [&](const CpuInfo& one) {
           return has_its_core(machine.cpus, one, online) && has_its_package(machine.cpus, one, online) &&
                  has_its_cache(machine.cpus, one, online) &&
                  read_cpu_list(node_file(one.node, "cpulist")).contains(one.cpu);
         });
}

std::optional<MachineParts> read_machine_file(const std::string& path, const std::string& mark) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (!file.valid() || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_size > kMostBytes ||
      !is_trusted(s))
    return std::nullopt;
  std::string text(static_cast<size_t>(s.st_size), '\0');
  if (pread(file.get(), text.data(), text.size(), 0) != s.st_size) return std::nullopt;
  return parse_machine_text(text, mark);
}

void write_machine_file(const std::string& path, const std::string& mark, const MachineParts& machine) {
  if (!is_trusted_folder(path.substr(0, path.rfind('/')))) return;
  // Of this process and thread, since several may write at once; one that was killed may have left its.
  const std::string made = path + "." + std::to_string(getpid()) + "-" + std::to_string(current_thread_id());
  unlink(made.c_str());
  UniqueFd file(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return;
  const std::string text = machine_text(mark, machine);
  const bool is_whole = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                        fchmod(file.get(), 0644) == 0;
  if (!is_whole || rename(made.c_str(), path.c_str()) != 0) unlink(made.c_str());
}

}  // namespace numalign
