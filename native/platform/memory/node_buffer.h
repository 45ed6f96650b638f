// NodeBuffer: memory of a mapping of its own, on chosen NUMA nodes, in ordinary pages or hugepages, every
// page of it there from the start. The kernel would otherwise look for a hugepage when it is first touched,
// and send SIGBUS where there is none. Freed when the object goes. Movable, not copyable. Thread-safety: a
// NodeBuffer may be used by one thread at a time; create() may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/id_set.h"
#include "core/result.h"
#include "platform/syscall.h"

namespace numalign {

struct NodeBufferRequest {
  size_t bytes;
  size_t hugepage_bytes = 0;  // 0: ordinary pages
  NodeSet nodes{};
  bool strict = false;  // on these nodes or not at all; otherwise they are preferred
};

class NodeBuffer {
 public:
  // mmap(2), mbind(2) before anything is touched, madvise(2), move_pages(2). Blocks until the memory is
  // cleared. ENOMEM: there are too few pages, on these nodes if it is strict; a hugepage that is missing is
  // noticed here at the latest, by an error and never by a signal. EPERM, ENOSYS: mbind is denied, and the
  // memory did not come to lie on the nodes without it; only where it is strict. EINVAL: no such page size,
  // or node, or not allowed here. REQUIRES: bytes > 0, hugepage_bytes is 0 or a power of two, nodes is not
  // empty.
  static Result<NodeBuffer> create(const NodeBufferRequest& request);

  NodeBuffer(NodeBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), mapped_bytes_(other.mapped_bytes_) {}
  NodeBuffer& operator=(NodeBuffer&&) = delete;
  ~NodeBuffer();

  void* data() const { return data_; }

  // Gives the memory back and leaves the addresses to whoever may still know them, for as long as the process
  // lives: they read as zero, and what is written there is ordinary memory. Nothing is freed later.
  static void abandon(NodeBuffer buffer);

 private:
  NodeBuffer(void* data, size_t mapped_bytes) : data_(data), mapped_bytes_(mapped_bytes) {}

  void* data_;
  size_t mapped_bytes_;
};

// The memory of a NodeBuffer goes to other nodes, where its later pages come from, too: the kernel copies its
// pages, hugepages among them, as far as no other process has them and the nodes have as many. EIO: not all
// of it could be moved. `request`: as it was created, with the new nodes. REQUIRES: data begins its mapping.
Result<Done> move_node_buffer(void* data, const NodeBufferRequest& request);

}  // namespace numalign
