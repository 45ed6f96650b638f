#include "platform/discovery/cpu_events.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace numalign {
namespace {

// Its exit code, of a process in a network namespace of its own, where no other process hears what it sends.
int in_own_network(const std::function<int()>& test) {
  pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWNET) == 0 ? test() : 77);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

bool send_notice(const std::string& text) {
  UniqueFd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl group{};
  group.nl_family = AF_NETLINK;
  group.nl_groups = 1;
  return sendto(fd.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&group), sizeof group) > 0;
}

bool is_readable(const CpuEvents& events) {
  pollfd ready{events.fd(), POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

TEST(CpuEvents, TellsOfCpusThatGoAndComeAndWakesForNothingElse) {
  int code = in_own_network([] {
    Result<CpuEvents> opened = CpuEvents::open();
    if (!opened.ok()) return 77;
    CpuEvents events = std::move(opened).value();
    if (!send_notice("add@/devices/virtual/net/veth0")) return 77;
    if (is_readable(events)) return 1;
    for (const char* action : {"online", "offline"}) {
      if (!send_notice(std::string(action) + "@/devices/system/cpu/cpu1")) return 2;
      if (!is_readable(events)) return 3;
      if (events.read().value().size() != 1) return 4;
      if (is_readable(events) || !events.read().value().empty()) return 5;
    }
    return 0;
  });
  if (code == 77) GTEST_SKIP() << "no network namespace of its own, or the kernel does not tell here";
  EXPECT_EQ(code, 0);
}

TEST(CpuEvents, TellsOnceOfSeveral) {
  int code = in_own_network([] {
    Result<CpuEvents> opened = CpuEvents::open();
    if (!opened.ok()) return 77;
    CpuEvents events = std::move(opened).value();
    // More than the socket takes.
    for (int i = 0; i < 5000; i++)
      if (!send_notice("offline@/devices/system/cpu/cpu1")) break;
    return events.read().value().size() == 1 && !is_readable(events) ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "no network namespace of its own, or the kernel does not tell here";
  EXPECT_EQ(code, 0);
}

TEST(CpuEvents, AreRefusedWhereTheKernelSendsNone) {
  int code = in_own_network([] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return 77;
    Result<CpuEvents> opened = CpuEvents::open();
    return !opened.ok() && opened.error().errno_value == EPERM ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "no user namespace of its own";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace numalign
