#include "platform/discovery/machine_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "platform/discovery/linux_memory.h"
#include "platform/files/code_files.h"
#include "platform/files/unique_fd.h"

namespace numalign {
namespace {

// Of a machine with the most CPUs.
constexpr off_t kMostBytes = 1 << 20;
constexpr std::string_view kFolder = "/sys/devices/system/";
// Not all kernels have those of nodes.
constexpr const char* kLists[] = {"cpu/online",      "cpu/possible",           "node/online",  "node/has_cpu",
                                  "node/has_memory", "node/has_normal_memory", "node/possible"};

std::string text_of(const struct stat& s) {
  return std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino) + " " + std::to_string(s.st_size) + " " +
         std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
}

// The file that this code is in: another version may find something else.
std::optional<std::string> own_code() {
  Dl_info info;
  struct stat s;
  if (dladdr(reinterpret_cast<const void*>(&machine_mark), &info) == 0 || stat(info.dli_fname, &s) != 0)
    return std::nullopt;
  return text_of(s);
}

// The folder as the kernel has it, and which one: others are mounted over it in containers and tests.
std::optional<std::string> kernel_folder(const std::string& path) {
  struct statfs system;
  struct stat s;
  if (statfs(path.c_str(), &system) != 0 || system.f_type != SYSFS_MAGIC || stat(path.c_str(), &s) != 0)
    return std::nullopt;
  return std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
}

}  // namespace

std::optional<std::string> machine_mark(const std::string& reader) {
  const std::optional<std::string> code = own_code();
  const std::optional<std::string> boot = read_first_line("/proc/sys/kernel/random/boot_id");
  if (!code || !boot) return std::nullopt;
  std::string mark = "code " + *code + "\nreader " + reader + "\nboot " + *boot;
  for (const char* part : {"cpu", "node"}) {
    const std::optional<std::string> folder = kernel_folder(std::string(kFolder) + part);
    if (!folder) return std::nullopt;
    mark += "\n" + std::string(part) + " " + *folder;
  }
  for (const char* list : kLists) {
    const std::optional<std::string> ids = read_first_line(std::string(kFolder) + list);
    mark += "\n" + std::string(list) + " " + ids.value_or("-");
  }
  const NodeSet nodes = read_node_list("online");
  if (nodes.empty()) return std::nullopt;
  nodes.for_each([&](int node) {
    const std::string list = "node/node" + std::to_string(node) + "/cpulist";
    mark += "\n" + list + " " + read_first_line(std::string(kFolder) + list).value_or("-");
  });
  read_gpu_nodes().for_each([&](int node) { mark += "\ngpu node " + std::to_string(node); });
  return mark;
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
  // Of this process and thread: several may write at once.
  const std::string made = path + "." + std::to_string(getpid()) + "-" + std::to_string(gettid());
  UniqueFd file(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return;
  const std::string text = machine_text(mark, machine);
  const bool is_whole = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                        fchmod(file.get(), 0644) == 0;
  if (!is_whole || rename(made.c_str(), path.c_str()) != 0) unlink(made.c_str());
}

}  // namespace numalign
