// Whether /proc is that of this process's pid namespace, see proc(5). Thread-safety: any thread.
#pragma once

namespace numalign {

// True if /proc shows this process under its own id. Another may be mounted at any time.
bool is_proc_ours();

}  // namespace numalign
