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

// The first line of an attribute; nothing where it cannot be read. A number of any kind fits.
std::optional<std::string> read_attribute(const UniqueFd& device, const char* name) {
  UniqueFd file(openat(device.get(), name, O_RDONLY | O_CLOEXEC));
  char text[32];
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

// "0x8086"
std::optional<uint32_t> read_hex(const UniqueFd& device, const char* name) {
  std::optional<std::string> text = read_attribute(device, name);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  return parse_number<uint32_t>(std::string_view(*text).substr(2), 16);
}

// What a link points to; empty where there is none.
fs::path link_target(int folder, const char* name) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(folder, name, target, sizeof target);
  return length < 0 ? fs::path() : fs::path(std::string_view(target, static_cast<size_t>(length)));
}

std::vector<int> read_numa_node(const UniqueFd& device) {
  std::optional<std::string> text = read_attribute(device, "numa_node");
  std::optional<int> node = text ? parse_number<int>(*text, 10) : std::nullopt;
  if (!node || *node < 0) return {};  // -1: the firmware does not say
  return {*node};
}

// Nothing for bridges, and for what is not there any more. All of it is read through one open folder: half
// the time of whole paths, and never a mixture of a device and the one that came in its place.
std::optional<PciDevice> read_device(const UniqueFd& folder, const std::string& id) {
  UniqueFd at(openat(folder.get(), id.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::optional<uint32_t> code = read_hex(at, "class");  // with the programming interface: 0x010802
  if (!code || *code > 0xffffff || *code >> 16 == kBridges) return std::nullopt;
  std::optional<uint32_t> vendor = read_hex(at, "vendor");
  std::optional<uint32_t> device = read_hex(at, "device");
  if (!vendor || !device || *vendor > UINT16_MAX || *device > UINT16_MAX) return std::nullopt;
  std::string parent = link_target(at.get(), "physfn").filename().string();
  return PciDevice{
      .id = id,
      .device_class = static_cast<uint16_t>(*code >> 8),
      .vendor = static_cast<uint16_t>(*vendor),
      .device = static_cast<uint16_t>(*device),
      .driver = link_target(at.get(), "driver").filename().string(),
      .names = {},
      .nodes = read_numa_node(at),
      .parent = is_pci_address(parent) && parent != id ? parent : "",
  };
}

// Where a namespace of an NVMe subsystem is reached over several controllers, the disk is not below any of
// them, only a hidden path to it is: nvme0c1n1 is a path to nvme0n1.
std::string disk_name(std::string name) {
  size_t path = name.find('c');
  size_t digits_end = path == name.npos ? path : name.find_first_not_of("0123456789", path + 1);
  bool is_hidden = name.starts_with("nvme") && digits_end != name.npos && digits_end > path + 1 &&
                   name[digits_end] == 'n' && path > 4;
  return is_hidden ? name.erase(path, digits_end - path) : name;
}

using NamesOf = std::map<std::string, std::vector<std::string>>;

// Each entry is a link such as "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0": it belongs to the
// last PCI device on the way. One readlink() an entry finds them whatever lies between.
void add_names(const std::string& folder, std::string_view only_below, NamesOf& names_of) {
  for (const std::string& entry : list(folder)) {
    fs::path target = link_target(AT_FDCWD, (folder + "/" + entry).c_str());
    if (!only_below.empty() && target.parent_path().filename() != only_below) continue;
    std::string device;
    for (const fs::path& part : target) {
      if (is_pci_address(part.native())) device = part.native();
    }
    if (!device.empty()) names_of[device].push_back(disk_name(entry));
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
