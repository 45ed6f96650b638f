#include "platform/discovery/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/id_list.h"
#include "platform/files/unique_fd.h"

namespace numalign {

std::optional<std::string> read_first_line(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  // The kernel writes these files in one piece.
  char text[16 * 1024];
  const ssize_t size = read(file.get(), text, sizeof text);
  const std::string_view all(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return std::string(all.substr(0, all.find('\n')));
}

std::optional<std::string> read_sysfs(const std::string& name) {
  return read_first_line("/sys/devices/system/" + name);
}

CpuSet read_cpu_list(const std::string& name) {
  std::optional<std::string> line = read_sysfs(name);
  if (!line) return {};
  Result<CpuSet> cpus = parse_id_list<CpuTag>(*line);
  return cpus.ok() ? cpus.value() : CpuSet();
}

std::string node_file(int node, const char* name) { return "node/node" + std::to_string(node) + "/" + name; }

}  // namespace numalign
