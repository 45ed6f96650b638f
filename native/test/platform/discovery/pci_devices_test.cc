#include "platform/discovery/pci_devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void link(const fs::path& path, const std::string& target) {
  fs::create_directories(path.parent_path());
  fs::create_symlink(target, path);
}

struct Attributes {
  std::string device_class = "0x020000\n";
  std::string vendor = "0x8086\n";
  std::string device = "0x1572\n";
  std::string numa_node = "1\n";
};

// A tree shaped like /sys: devices below devices/, a link to each below bus/pci/devices.
class FakeSysfs {
 public:
  std::string path() const { return folder_.path(); }
  fs::path root() const { return folder_.path(); }
  fs::path folder_of(const std::string& id) const { return root() / "devices/pci0000:00" / id; }

  void add(const std::string& id, const Attributes& attributes = {}) {
    fs::path folder = folder_of(id);
    write_file(folder / "class", attributes.device_class);
    write_file(folder / "vendor", attributes.vendor);
    write_file(folder / "device", attributes.device);
    write_file(folder / "numa_node", attributes.numa_node);
    link(root() / "bus/pci/devices" / id, "../../../devices/pci0000:00/" + id);
  }
  void set_driver(const std::string& id, const std::string& driver) {
    link(folder_of(id) / "driver", "../../../bus/pci/drivers/" + driver);
  }
  void set_parent(const std::string& id, const std::string& parent) {
    link(folder_of(id) / "physfn", "../" + parent);
  }
  // `list`: the folder of links, such as class/net; `below`: what lies between the device and the name.
  void add_name(const std::string& list, const std::string& id, const std::string& below,
                const std::string& name) {
    std::string up = list == "block" ? "../" : "../../";
    link(root() / list / name, up + "devices/pci0000:00/" + id + "/" + below + name);
  }

 private:
  test::TemporaryFolder folder_;
};

std::vector<std::string> ids(const std::vector<PciDevice>& devices) {
  std::vector<std::string> ids;
  for (const PciDevice& device : devices) ids.push_back(device.id);
  return ids;
}

using Texts = std::vector<std::string>;

TEST(PciDevices, ReadsClassVendorDriverNodeAndNames) {
  FakeSysfs sysfs;
  sysfs.add("0000:3b:00.0");
  sysfs.set_driver("0000:3b:00.0", "i40e");
  sysfs.add_name("class/net", "0000:3b:00.0", "net/", "eth1");
  sysfs.add_name("class/net", "0000:3b:00.0", "net/", "eth0");
  EXPECT_EQ(
      read_pci_devices(sysfs.path()),
      (std::vector<PciDevice>{{"0000:3b:00.0", 0x0200, 0x8086, 0x1572, "i40e", {"eth0", "eth1"}, {1}, ""}}));
}

TEST(PciDevices, GivesVirtualFunctionsTheirPhysicalFunction) {
  FakeSysfs sysfs;
  for (const char* id : {"0000:82:00.0", "0000:82:00.1", "0000:82:02.7"}) sysfs.add(id);
  sysfs.set_parent("0000:82:00.1", "0000:82:00.0");
  sysfs.set_parent("0000:82:02.7", "0000:82:00.0");
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].parent, "");
  EXPECT_EQ(devices[1].parent, "0000:82:00.0");
  EXPECT_EQ(devices[2].parent, "0000:82:00.0");
}

TEST(PciDevices, LeavesBridgesOut) {
  FakeSysfs sysfs;
  sysfs.add("0000:00:00.0", {.device_class = "0x060000\n"});
  sysfs.add("0000:00:1f.0", {.device_class = "0x060100\n"});
  sysfs.add("0000:00:1f.2", {.device_class = "0x010601\n"});
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(ids(devices), Texts{"0000:00:1f.2"});
  EXPECT_EQ(devices[0].device_class, 0x0106);
}

TEST(PciDevices, FindsNamesWhateverLiesBetween) {
  FakeSysfs sysfs;
  for (const char* id : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"}) sysfs.add(id);
  sysfs.add_name("block", "0000:01:00.0", "virtio1/block/", "vda");
  sysfs.add_name("block", "0000:02:00.0", "ata1/host0/target0:0:0/0:0:0:0/block/", "sda");
  // A port's own folder, and the device behind it.
  sysfs.add_name("block", "0000:01:00.0/0000:03:00.0", "nvme/nvme0/", "nvme0n1");
  sysfs.add_name("block", "0000:03:00.0", "nvme/nvme1/", "nvme1c7n2");
  sysfs.add_name("class/drm", "0000:04:00.0", "drm/", "card0");
  sysfs.add_name("class/drm", "0000:04:00.0", "drm/card0/", "card0-DP-1");
  sysfs.add_name("class/drm", "0000:04:00.0", "drm/", "renderD128");
  sysfs.add_name("class/infiniband", "0000:04:00.0", "infiniband/", "mlx5_0");
  link(sysfs.root() / "class/net/lo", "../../devices/virtual/net/lo");
  write_file(sysfs.root() / "class/net/bonding_masters", "\n");
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].names, Texts{"vda"});
  EXPECT_EQ(devices[1].names, Texts{"sda"});
  EXPECT_EQ(devices[2].names, (Texts{"nvme0n1", "nvme1n2"})) << "a hidden path has the name of its disk";
  EXPECT_EQ(devices[3].names, (Texts{"mlx5_0", "card0", "renderD128"}));
}

TEST(PciDevices, KnowsNoNodeWhereTheFirmwareSaysNone) {
  FakeSysfs sysfs;
  sysfs.add("0000:01:00.0", {.numa_node = "-1\n"});
  sysfs.add("0000:02:00.0", {.numa_node = ""});
  sysfs.add("0000:03:00.0", {.numa_node = "99999999999999999999\n"});
  sysfs.add("0000:04:00.0", {.numa_node = "1 2\n"});
  sysfs.add("0000:05:00.0");
  fs::remove(sysfs.folder_of("0000:05:00.0") / "numa_node");
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(devices.size(), 5u);
  for (const PciDevice& device : devices) EXPECT_TRUE(device.nodes.empty()) << device.id;
}

TEST(PciDevices, TakesDomainsOfMoreThanFourDigits) {
  FakeSysfs sysfs;
  sysfs.add("10000:e1:00.0");
  sysfs.add("0000:e1:00.0");
  sysfs.add_name("block", "0000:e1:00.0/pci10000:e0/10000:e1:00.0", "nvme/nvme0/", "nvme0n1");
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(ids(devices), (Texts{"0000:e1:00.0", "10000:e1:00.0"}));
  EXPECT_EQ(devices[1].names, Texts{"nvme0n1"});
}

TEST(PciDevices, LeavesOutWhatIsGoneOrMakesNoSense) {
  FakeSysfs sysfs;
  sysfs.add("0000:01:00.0");
  link(sysfs.root() / "bus/pci/devices/0000:02:00.0", "../../../devices/pci0000:00/0000:02:00.0");
  sysfs.add("0000:03:00.0");
  fs::remove(sysfs.folder_of("0000:03:00.0") / "vendor");
  sysfs.add("0000:04:00.0", {.device_class = "0x"});
  sysfs.add("0000:05:00.0", {.device_class = "0x1000000\n"});
  sysfs.add("0000:06:00.0", {.vendor = "0x18086\n"});
  sysfs.add("0000:07:00.0", {.device = std::string(100000, '0')});
  sysfs.add("0000:08:00.0", {.vendor = "8086\n"});
  sysfs.add("0000:09:00.0", {.device_class = std::string(3, '\0')});
  sysfs.add("not-an-address");
  fs::create_directories(sysfs.root() / "bus/pci/devices/0000:0a:00.0/class");
  EXPECT_EQ(ids(read_pci_devices(sysfs.path())), Texts{"0000:01:00.0"});
}

TEST(PciDevices, DoesNotTakeAnotherFileForALink) {
  FakeSysfs sysfs;
  sysfs.add("0000:01:00.0");
  write_file(sysfs.folder_of("0000:01:00.0") / "driver", "x");
  sysfs.set_parent("0000:01:00.0", "somewhere");
  std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].driver, "");
  EXPECT_EQ(devices[0].parent, "");
}

TEST(PciDevices, FindsNothingWhereThereIsNoPci) {
  test::TemporaryFolder folder;
  EXPECT_TRUE(read_pci_devices(folder.path()).empty());
  EXPECT_TRUE(read_pci_devices(folder.path() + "/nowhere").empty());
  fs::create_directories(folder.path() + "/bus/pci/devices");
  EXPECT_TRUE(read_pci_devices(folder.path()).empty());
}

TEST(PciDevices, CanReadWhileDevicesComeAndGo) {
  FakeSysfs sysfs;
  sysfs.add("0000:01:00.0");
  std::atomic<bool> stop = false;
  std::thread changes([&] {
    while (!stop) {
      sysfs.add("0000:02:00.0");
      sysfs.set_driver("0000:02:00.0", "nvme");
      sysfs.add_name("block", "0000:02:00.0", "nvme/nvme0/", "nvme0n1");
      fs::remove_all(sysfs.folder_of("0000:02:00.0"));
      fs::remove(sysfs.root() / "bus/pci/devices/0000:02:00.0");
      fs::remove(sysfs.root() / "block/nvme0n1");
    }
  });
  for (int i = 0; i < 300; i++) {
    std::vector<PciDevice> devices = read_pci_devices(sysfs.path());
    ASSERT_GE(devices.size(), 1u);
    ASSERT_LE(devices.size(), 2u);
    EXPECT_EQ(devices[0].id, "0000:01:00.0");
  }
  stop = true;
  changes.join();
}

TEST(PciDevices, SeesWhatThisMachineHas) {
  std::error_code error;
  size_t entries = 0;
  for (fs::directory_iterator at("/sys/bus/pci/devices", error), end; !error && at != end; ++at) {
    std::ifstream file(at->path() / "class");
    std::string device_class;
    file >> device_class;
    entries += device_class.starts_with("0x06") ? 0 : 1;
  }
  std::vector<PciDevice> devices = read_pci_devices("/sys");
  EXPECT_EQ(devices.size(), entries);
  for (const PciDevice& device : devices) EXPECT_TRUE(is_pci_address(device.id)) << device.id;
}

}  // namespace
}  // namespace numalign
