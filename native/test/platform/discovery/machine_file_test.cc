#include "platform/discovery/machine_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "platform/discovery/hwloc_discovery.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

class MachineFile : public testing::Test {
 protected:
  MachineFile() { chmod(temporary_.path().c_str(), 0755); }
  std::string path() const { return temporary_.path() + "/machine"; }
  std::optional<MachineParts> read() const { return read_machine_file(path(), "mark"); }
  void write() const { write_machine_file(path(), "mark", machine_); }
  size_t files() const {
    std::filesystem::directory_iterator all(temporary_.path());
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  test::TemporaryFolder temporary_;
  const MachineParts machine_{{{0, 0, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}}, NodeSet{0}};
};

TEST_F(MachineFile, KeepsAMachine) {
  EXPECT_FALSE(read());
  write();
  EXPECT_EQ(read(), machine_);
  EXPECT_FALSE(read_machine_file(path(), "other"));
  write_machine_file(path(), "other", {});
  EXPECT_FALSE(read());
  EXPECT_EQ(files(), 1u);
}

TEST_F(MachineFile, IsReadByAllUsersAndWrittenByItsOwn) {
  const mode_t before = umask(0077);
  write();
  umask(before);
  struct stat s;
  ASSERT_EQ(stat(path().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0644u);
}

TEST_F(MachineFile, IsNoneThatOthersMayWriteOrThatIsALink) {
  write();
  ASSERT_EQ(chmod(path().c_str(), 0664), 0);
  EXPECT_FALSE(read());
  ASSERT_EQ(chmod(path().c_str(), 0644), 0);
  EXPECT_TRUE(read());
  std::filesystem::rename(path(), path() + "-real");
  std::filesystem::create_symlink(path() + "-real", path());
  EXPECT_FALSE(read());
}

TEST_F(MachineFile, IsNoneOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  write();
  ASSERT_EQ(chown(path().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(read());
}

TEST_F(MachineFile, IsNotWrittenWhereOthersMayWrite) {
  ASSERT_EQ(chmod(temporary_.path().c_str(), 0777), 0);
  write();
  EXPECT_EQ(files(), 0u);
}

TEST_F(MachineFile, IsWholeWhileSeveralWriteIt) {
  write();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([this] {
      for (int turn = 0; turn < 200; turn++) {
        write();
        EXPECT_EQ(read(), machine_);
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(files(), 1u);
}

const void* const kOwnCode = reinterpret_cast<const void*>(&machine_mark);

TEST(MachineMark, IsOfThisBootAndOfTheCodeThatReadsIt) {
  const std::optional<std::string> mark = machine_mark(kOwnCode);
  if (!mark) GTEST_SKIP() << "Linux does not say which machine this is here";
  EXPECT_EQ(machine_mark(kOwnCode), mark);
  EXPECT_NE(machine_mark(reinterpret_cast<const void*>(&std::fopen)), mark);
  EXPECT_NE(mark->find("\ncpu/online "), mark->npos);
  EXPECT_NE(mark->find("\nboot "), mark->npos);
  EXPECT_EQ(mark->find("\n\n"), mark->npos);
}

TEST(MachineMark, IsNoneForCodeWithoutABuild) {
  int of_no_code = 0;
  EXPECT_FALSE(machine_mark(&of_no_code));
}

// This machine, and the same with each member of each CPU changed.
TEST(MachineFileOfThisMachine, IsConfirmedByLinuxAndNothingElseIs) {
  const TopologySpec spec = discover(DiscoverySource::kBareMachine, "").value();
  MachineParts machine{spec.cpus, {}};
  for (const NodeInfo& node : spec.nodes) machine.nodes.insert(node.node);
  if (!is_as_linux_says(machine)) GTEST_SKIP() << "Linux says something else here, so that nothing is kept";
  for (size_t i = 0; i < machine.cpus.size(); i++) {
    for (const auto member : {&CpuInfo::cpu, &CpuInfo::core, &CpuInfo::package, &CpuInfo::node}) {
      MachineParts other = machine;
      other.cpus[i].*member += 1000;
      EXPECT_FALSE(is_as_linux_says(other)) << i;
    }
    MachineParts fewer = machine;
    fewer.cpus.erase(fewer.cpus.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(is_as_linux_says(fewer));
  }
}

}  // namespace
}  // namespace numalign
