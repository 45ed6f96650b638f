#include "platform/discovery/pci_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "platform/files/unique_fd.h"

namespace numalign {
namespace {

namespace fs = std::filesystem;

constexpr int kBridges = 0x06;  // the base class

std::vector<std::string> list(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// The first line of an attribute; nullopt if it cannot be read. The buffer holds every attribute
// read here.
std::optional<std::string> read_attribute(const UniqueFd& device, const char* name) {
  UniqueFd file(openat(device.get(), name, O_RDONLY | O_CLOEXEC));
  char text[128];
  ssize_t length = file.valid() ? read(file.get(), text, sizeof text) : -1;
  if (length <= 0) return std::nullopt;
  std::string line(text, static_cast<size_t>(length));
  return line.substr(0, line.find('\n'));
}

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base) {
  Number number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The file modalias, like "pci:v00008086d00001572sv00008086sd00000001bc02sc00i00": the contents of
// vendor, device and class in one. (uevent has them too, but on some kernels its reader waits for
// the driver.)
class Modalias {
 public:
  explicit Modalias(std::string_view text) : left_(text) {}

  // The number with this many digits behind `name`; nullopt if something else comes next.
  std::optional<uint16_t> take(std::string_view name, size_t digits) {
    std::string_view text = left_.substr(0, name.size() + digits);
    if (!text.starts_with(name)) return std::nullopt;
    left_ = left_.substr(text.size());
    return text.size() < name.size() + digits ? std::nullopt
                                              : parse_number<uint16_t>(text.substr(name.size()), 16);
  }
  void skip_to(std::string_view name) { left_ = left_.substr(std::min(left_.find(name), left_.size())); }

 private:
  std::string_view left_;
};

// The target of a link; empty if there is none.
std::string link_target(int folder, const char* name) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(folder, name, target, sizeof target);
  return length < 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The path without its last name.
std::string_view folder_of(std::string_view path) {
  size_t end = path.rfind('/');
  return end == path.npos ? std::string_view() : path.substr(0, end);
}

std::vector<int> read_numa_node(const UniqueFd& device) {
  std::optional<std::string> text = read_attribute(device, "numa_node");
  std::optional<int> node = text ? parse_number<int>(*text, 10) : std::nullopt;
  if (!node || *node < 0) return {};  // -1: the firmware does not report it
  return {*node};
}

// nullopt for bridges, and for a device that is gone. Reads all files through one open folder: half
// the time of whole paths, and never a mixture of a device and its replacement.
std::optional<PciDevice> read_device(const UniqueFd& folder, const std::string& id) {
  UniqueFd at(openat(folder.get(), id.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string text = read_attribute(at, "modalias").value_or("");
  Modalias alias(text);
  std::optional<uint16_t> vendor = alias.take("pci:v", 8);
  std::optional<uint16_t> device = alias.take("d", 8);
  alias.skip_to("bc");
  std::optional<uint16_t> base_class = alias.take("bc", 2);
  std::optional<uint16_t> subclass = alias.take("sc", 2);
  if (!vendor || !device || !base_class || !subclass || *base_class == kBridges) return std::nullopt;
  std::string parent(last_name(link_target(at.get(), "physfn")));
  return PciDevice{
      .id = id,
      .device_class = static_cast<uint16_t>(*base_class << 8 | *subclass),
      .vendor = *vendor,
      .device = *device,
      .driver = std::string(last_name(link_target(at.get(), "driver"))),
      .names = {},
      .nodes = read_numa_node(at),
      .parent = is_pci_address(parent) && parent != id ? parent : "",
  };
}

// If a namespace of an NVMe subsystem has several controllers, the disk is below none of them; only
// a hidden path to it is: nvme0c1n1 is a path to nvme0n1.
std::string disk_name(std::string name) {
  size_t path = name.find('c');
  size_t digits_end = path == name.npos ? path : name.find_first_not_of("0123456789", path + 1);
  bool is_hidden = name.starts_with("nvme") && digits_end != name.npos && digits_end > path + 1 &&
                   name[digits_end] == 'n' && path > 4;
  return is_hidden ? name.erase(path, digits_end - path) : name;
}

using NamesOf = std::map<std::string, std::vector<std::string>>;

// Each entry is a link like "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0": it belongs to
// the last PCI device in the path. One readlink() per entry finds it, whatever lies between.
void add_names(const std::string& folder, std::string_view only_below, NamesOf& names_of) {
  for (const std::string& entry : list(folder)) {
    std::string target = link_target(AT_FDCWD, (folder + "/" + entry).c_str());
    std::string_view above = folder_of(target);
    if (!only_below.empty() && last_name(above) != only_below) continue;
    while (!above.empty() && !is_pci_address(last_name(above))) above = folder_of(above);
    if (!above.empty()) names_of[std::string(last_name(above))].push_back(disk_name(entry));
  }
}

}  // namespace

std::vector<PciDevice> read_pci_devices(const std::string& sysfs) {
  std::string path = sysfs + "/bus/pci/devices";
  UniqueFd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return {};
  std::vector<PciDevice> devices;
  for (const std::string& id : list(path)) {
    if (!is_pci_address(id)) continue;
    if (std::optional<PciDevice> device = read_device(folder, id)) devices.push_back(*std::move(device));
  }
  if (devices.empty()) return devices;
  NamesOf names_of;
  add_names(sysfs + "/class/net", "", names_of);
  add_names(sysfs + "/class/infiniband", "", names_of);
  add_names(sysfs + "/block", "", names_of);
  add_names(sysfs + "/class/drm", "drm", names_of);  // cards; their connectors are below them
  add_names(sysfs + "/class/accel", "", names_of);
  for (PciDevice& device : devices) device.names = std::move(names_of[device.id]);
  return devices;
}

}  // namespace numalign
