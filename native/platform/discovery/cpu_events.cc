#include "platform/discovery/cpu_events.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace numalign {
namespace {

// linux/proc_ns.h: the inode of the initial user namespace.
constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;
// The group of the kernel's own notices; those of group 2 come from udev.
constexpr unsigned kKernelGroup = 1;

// Linux 4.18 and newer send notices to these network namespaces only.
bool receives_notices() {
  UniqueFd network(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!network.valid()) return false;
  UniqueFd user(ioctl(network.get(), NS_GET_USERNS));
  struct stat s;
  return user.valid() && fstat(user.get(), &s) == 0 && s.st_ino == kInitialUserNamespace;
}

// A notice begins with its action. Lets only "online@" and "offline@" pass, so that nothing else
// wakes this process.
int keep_only_cpus(int fd) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f6e6c69, 1, 0),  // onli
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f66666c, 0, 1),  // offl
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

Result<CpuEvents> CpuEvents::open() {
  const char* what = "cannot watch CPUs going offline or online";
  UniqueFd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return syscall_error("socket", what);
  if (!receives_notices()) return syscall_error("ioctl", what, EPERM);
  if (keep_only_cpus(fd.get()) != 0) return syscall_error("setsockopt", what);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return syscall_error("bind", what);
  return CpuEvents(std::move(fd));
}

Result<std::vector<CpuEvent>> CpuEvents::read() {
  bool has_event = false;
  for (;;) {
    char start[8];
    ssize_t size = recv(fd_.get(), start, sizeof start, MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    // ENOBUFS: some were lost.
    if (size >= 0 || errno == ENOBUFS) {
      has_event = true;
      continue;
    }
    if (errno != EAGAIN) return syscall_error("recv", "cannot read the events of CPUs");
    return has_event ? std::vector<CpuEvent>(1) : std::vector<CpuEvent>();
  }
}

}  // namespace numalign
