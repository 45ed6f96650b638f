// NodeBuffer: memory in its own mapping, on chosen NUMA nodes, in ordinary pages or hugepages, with
// every page present from the start. Otherwise the kernel would look for a hugepage at its first
// touch, and send SIGBUS if there is none. Freed with the object. Movable, not copyable.
// Thread-safety: a NodeBuffer may be used by one thread at a time; create() may be called from any
// thread.
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
  // mmap(2), mbind(2) before anything is touched, madvise(2), move_pages(2). Blocks until the
  // memory is cleared. ENOMEM: there are too few pages (on these nodes, if strict); a missing
  // hugepage shows here at the latest, as an error and never as a signal. EPERM, ENOSYS: mbind is
  // denied, and the memory is not on the nodes without it (only if strict). EINVAL: no such page
  // size or node, or not allowed here. REQUIRES: bytes > 0, hugepage_bytes is 0 or a power of two,
  // nodes is not empty.
  static Result<NodeBuffer> create(const NodeBufferRequest& request);

  NodeBuffer(NodeBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), mapped_bytes_(other.mapped_bytes_) {}
  NodeBuffer& operator=(NodeBuffer&&) = delete;
  ~NodeBuffer();

  void* data() const { return data_; }

  // Gives the memory back, but keeps the addresses valid for as long as the process lives: they
  // read as zero, and writes go to ordinary memory. Nothing is freed later.
  static void abandon(NodeBuffer buffer);

 private:
  NodeBuffer(void* data, size_t mapped_bytes) : data_(data), mapped_bytes_(mapped_bytes) {}

  void* data_;
  size_t mapped_bytes_;
};

// Moves the memory of a NodeBuffer to other nodes, which also serve its later pages. The kernel
// copies its pages, even hugepages, if no other process has them and the nodes have enough. EIO:
// not all of it could be moved. `request`: as at creation, with the new nodes. REQUIRES: data
// begins its mapping.
Result<Done> move_node_buffer(void* data, const NodeBufferRequest& request);

}  // namespace numalign
