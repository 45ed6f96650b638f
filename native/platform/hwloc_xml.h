// Checks an hwloc XML document (version 2.x) and rewrites it to the part that discovery reads. hwloc's own
// import trusts what its own export wrote: it does not check that sets agree, recurses as deep as the
// document nests, and announces on stderr that it gave up. What comes out of here is small, well-formed and
// consistent, whichever XML parser hwloc was built with. Pure functions; safe to use from any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace numalign {

// Keeps the Machine, Package, Die, Group, L3Cache, Core, PU and NUMANode objects, their page types and the
// distances between NUMA nodes. Other levels become caches of a kind that discovery filters out; I/O and Misc
// objects, infos, user data and comments go.
//
// Errors: kHwloc for a document that is too large, truncated, not XML, not hwloc's, of another version, or
// that contradicts itself; the message names the line.
Result<std::string> sanitize_hwloc_xml(std::string_view text);

}  // namespace numalign
