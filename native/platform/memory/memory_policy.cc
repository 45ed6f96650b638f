#include "platform/memory/memory_policy.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>

#include "core/id_list.h"

namespace numalign {
namespace {

// From linux/mempolicy.h; older headers lack some.
constexpr int kPreferredMany = 5;   // MPOL_PREFERRED_MANY, Linux 5.15
constexpr int kModeFlags = 0xe000;  // MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING
constexpr unsigned kMoveStrict = 1 | 2;  // MPOL_MF_STRICT | MPOL_MF_MOVE

// A mask in the form of the kernel, which subtracts one from the number of bits.
struct KernelMask {
  static constexpr unsigned long kBits = NodeSet::kMaxId + 1;
  static constexpr int kWordBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kBits / kWordBits> words{};

  KernelMask() = default;
  explicit KernelMask(const NodeSet& nodes) {
    nodes.for_each([&](int node) { words[node / kWordBits] |= 1ul << node % kWordBits; });
  }
  NodeSet nodes() const {
    NodeSet set;
    for (int node = 0; node < static_cast<int>(kBits); node++) {
      if (words[node / kWordBits] >> node % kWordBits & 1) set.insert(node);
    }
    return set;
  }
};

std::string nodes_text(const NodeSet& nodes) { return "NUMA nodes " + format_id_list(nodes); }

// Calls `set(mode, mask)` with the forms of `policy` that this kernel may accept. `set` returns
// like a system call.
template <class Set>
bool apply(const MemoryPolicy& policy, Set&& set) {
  bool several = policy.mode == MemoryMode::kPreferred && policy.nodes.size() > 1;
  int mode = several ? kPreferredMany : static_cast<int>(policy.mode);
  if (set(mode | policy.flags, KernelMask(policy.nodes)) == 0) return true;
  if (!several || errno != EINVAL) return false;
  // The kernel is older, or no node will do; in the latter case each of these gives EINVAL too.
  for (int node = policy.nodes.first(); node >= 0; node = policy.nodes.next(node + 1)) {
    if (set(static_cast<int>(policy.mode) | policy.flags, KernelMask(NodeSet{node})) == 0) return true;
    if (errno != EINVAL) return false;
  }
  return false;
}

}  // namespace

Result<MemoryPolicy> memory_policy() {
  int mode = 0;
  KernelMask mask;
  if (syscall(SYS_get_mempolicy, &mode, mask.words.data(), KernelMask::kBits + 1, nullptr, 0) != 0) {
    return syscall_error("get_mempolicy", "cannot read the memory policy of the calling thread");
  }
  int number = mode & ~kModeFlags;
  if (number == kPreferredMany) number = static_cast<int>(MemoryMode::kPreferred);
  return MemoryPolicy{static_cast<MemoryMode>(number), mask.nodes(), mode & kModeFlags};
}

Result<Done> set_memory_policy(const MemoryPolicy& policy) {
  bool done = apply(policy, [](int mode, KernelMask mask) {
    return syscall(SYS_set_mempolicy, mode, mask.words.data(), KernelMask::kBits + 1);
  });
  if (done) return Done{};
  return syscall_error("set_mempolicy",
                       "cannot set the calling thread's memory policy to " + nodes_text(policy.nodes));
}

Result<Done> set_range_policy(void* address, size_t bytes, const MemoryPolicy& policy, bool move) {
  bool done = apply(policy, [&](int mode, KernelMask mask) {
    return syscall(SYS_mbind, address, bytes, mode, mask.words.data(), KernelMask::kBits + 1,
                   move ? kMoveStrict : 0u);
  });
  if (done) return Done{};
  return syscall_error("mbind", "cannot put memory on " + nodes_text(policy.nodes));
}

Result<long> migrate_pages(const NodeSet& from, const NodeSet& to, pid_t pid) {
  KernelMask old_nodes(from);
  KernelMask new_nodes(to);
  long left =
      syscall(SYS_migrate_pages, pid, KernelMask::kBits + 1, old_nodes.words.data(), new_nodes.words.data());
  if (left >= 0) return left;
  const std::string whose = pid == 0 ? "this process" : "process " + std::to_string(pid);
  return syscall_error("migrate_pages", "cannot move the memory of " + whose + " to " + nodes_text(to));
}

Result<Done> nodes_of_pages(std::span<void* const> pages, std::span<int> nodes) {
  if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) == 0) return Done{};
  return syscall_error("move_pages", "cannot read the NUMA nodes of pages");
}

}  // namespace numalign
