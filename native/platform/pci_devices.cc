#include "platform/pci_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "platform/unique_fd.h"

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
std::optional<std::string> read_attribute(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
std::optional<uint32_t> read_hex(const std::string& path) {
  std::optional<std::string> text = read_attribute(path);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  return parse_number<uint32_t>(std::string_view(*text).substr(2), 16);
}

// What a link points to; empty where there is none.
fs::path link_target(const std::string& path) {
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  return error ? fs::path() : target;
}

std::vector<int> read_numa_node(const std::string& device) {
  std::optional<std::string> text = read_attribute(device + "/numa_node");
  std::optional<int> node = text ? parse_number<int>(*text, 10) : std::nullopt;
  if (!node || *node < 0) return {};  // -1: the firmware does not say
  return {*node};
}

// Nothing for bridges, and for what is not there any more.
std::optional<PciDevice> read_device(const std::string& folder, const std::string& id) {
  std::string path = folder + "/" + id;
  std::optional<uint32_t> code = read_hex(path + "/class");  // with the programming interface: 0x010802
  if (!code || *code > 0xffffff || *code >> 16 == kBridges) return std::nullopt;
  std::optional<uint32_t> vendor = read_hex(path + "/vendor");
  std::optional<uint32_t> device = read_hex(path + "/device");
  if (!vendor || !device || *vendor > UINT16_MAX || *device > UINT16_MAX) return std::nullopt;
  std::string parent = link_target(path + "/physfn").filename().string();
  return PciDevice{
      .id = id,
      .device_class = static_cast<uint16_t>(*code >> 8),
      .vendor = static_cast<uint16_t>(*vendor),
      .device = static_cast<uint16_t>(*device),
      .driver = link_target(path + "/driver").filename().string(),
      .names = {},
      .nodes = read_numa_node(path),
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
    fs::path target = link_target(folder + "/" + entry);
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
  std::string folder = sysfs + "/bus/pci/devices";
  std::vector<PciDevice> devices;
  for (const std::string& id : list(folder)) {
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
