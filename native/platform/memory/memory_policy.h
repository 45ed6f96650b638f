// NUMA memory policy, and reading and moving pages: the only file that calls set_mempolicy(2),
// get_mempolicy(2), mbind(2), migrate_pages(2) and move_pages(2). A policy belongs to the calling
// thread; threads and programs started from it inherit it, and it decides about pages touched
// later. Thread-safety: every function may be called from any thread. Seccomp profiles of
// containers deny these calls: EPERM (Docker) or ENOSYS.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "core/id_set.h"
#include "core/result.h"
#include "platform/syscall.h"

namespace numalign {

// The kernel's numbers. kPreferred over several nodes is the kernel's MPOL_PREFERRED_MANY.
enum class MemoryMode : int {
  kDefault = 0,     // the node of the CPU that touches a page first
  kPreferred = 1,   // these nodes while they have memory, else others
  kBind = 2,        // these nodes only; the kernel kills rather than take from others
  kInterleave = 3,  // these nodes in turn
  kLocal = 4,       // like kDefault, but explicit
  kWeightedInterleave = 6,
};

struct MemoryPolicy {
  MemoryMode mode = MemoryMode::kDefault;
  NodeSet nodes{};
  int flags = 0;  // MPOL_F_* of policies that were read, so that they can be set again unchanged

  friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};

// get_mempolicy(2): the policy of the calling thread.
Result<MemoryPolicy> memory_policy();

// set_mempolicy(2): the policy of the calling thread. The kernel silently drops nodes that the
// cpuset forbids or that have no memory, so read back. EINVAL: no node is left. Before Linux 5.15,
// only one node can be preferred: the lowest that the kernel accepts.
Result<Done> set_memory_policy(const MemoryPolicy& policy);

// mbind(2): the policy of whole pages from `address` on, which must begin a page. Same rules. With
// `move`, moves existing pages, and reclaims memory on the nodes if needed; EIO: not all of them
// could be moved.
Result<Done> set_range_policy(void* address, size_t bytes, const MemoryPolicy& policy, bool move);

// migrate_pages(2) on a process, 0 for this one: moves pages on the nodes `from` to `to`. Returns
// how many could not be moved. Pages shared with other processes move only with CAP_SYS_NICE, and
// do not count otherwise. EPERM: this user may not move the process's pages, or not to nodes
// outside its cpuset.
Result<long> migrate_pages(const NodeSet& from, const NodeSet& to, pid_t pid = 0);

// move_pages(2) as a query: `nodes[i]` is the node of the page that holds `pages[i]`, or a negative
// errno (-ENOENT, -EFAULT: nothing is there yet). REQUIRES: nodes.size() == pages.size().
Result<Done> nodes_of_pages(std::span<void* const> pages, std::span<int> nodes);

}  // namespace numalign
