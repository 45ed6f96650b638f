#include "platform/discovery/pci_devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
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

// As the kernel writes it.
std::string alias(const std::string& classes, const std::string& vendor = "00008086") {
  return "pci:v" + vendor + "d00001572sv00008086sd00000001" + classes + "\n";
}

struct Attributes {
  std::string modalias = alias("bc02sc00i00");
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
    write_file(folder / "modalias", attributes.modalias);
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
  sysfs.add("0000:00:00.0", {.modalias = alias("bc06sc00i00")});
  sysfs.add("0000:00:1f.0", {.modalias = alias("bc06sc01i00")});
  sysfs.add("0000:00:1f.2", {.modalias = alias("bc01sc06i01")});
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
  fs::remove(sysfs.folder_of("0000:03:00.0") / "modalias");
  sysfs.add("0000:04:00.0", {.modalias = ""});
  sysfs.add("0000:05:00.0", {.modalias = alias("bc02sc")});
  sysfs.add("0000:06:00.0", {.modalias = alias("bc02sc00i00", "00018086")});
  sysfs.add("0000:07:00.0", {.modalias = std::string(100000, '0')});
  sysfs.add("0000:08:00.0", {.modalias = alias("bc02sc00i00", "8086")});
  sysfs.add("0000:09:00.0", {.modalias = alias("")});
  sysfs.add("0000:0b:00.0", {.modalias = alias("bc02bc02sc00i00")});
  sysfs.add("0000:0c:00.0", {.modalias = "usb" + alias("bc02sc00i00")});
  sysfs.add("0000:0d:00.0", {.modalias = std::string(40, '\0')});
  sysfs.add("not-an-address");
  fs::create_directories(sysfs.root() / "bus/pci/devices/0000:0a:00.0/modalias");
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

uint32_t number_in(const fs::path& path) {
  std::string text;
  std::ifstream(path) >> text;
  return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
}

// The kernel has files for the numbers too.
TEST(PciDevices, SeesWhatThisMachineHas) {
  std::error_code error;
  std::map<std::string, PciDevice> expected;
  for (fs::directory_iterator at("/sys/bus/pci/devices", error), end; !error && at != end; ++at) {
    PciDevice device;
    device.id = at->path().filename();
    device.device_class = static_cast<uint16_t>(number_in(at->path() / "class") >> 8);
    device.vendor = static_cast<uint16_t>(number_in(at->path() / "vendor"));
    device.device = static_cast<uint16_t>(number_in(at->path() / "device"));
    std::error_code no_driver;
    device.driver = fs::read_symlink(at->path() / "driver", no_driver).filename();
    if (device.device_class >> 8 != 0x06) expected[device.id] = device;
  }
  std::vector<PciDevice> devices = read_pci_devices("/sys");
  EXPECT_EQ(devices.size(), expected.size());
  for (PciDevice& device : devices) {
    EXPECT_TRUE(is_pci_address(device.id)) << device.id;
    device.names.clear();
    device.nodes.clear();
    device.parent.clear();
    EXPECT_EQ(device, expected[device.id]) << device.id;
  }
}

}  // namespace
}  // namespace numalign
