// The Linux list format for sets of ids: "0-3,8". Parsing follows the kubelet; printing is
// canonical: ascending, runs of two or more joined with '-'. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "core/id_set.h"
#include "core/result.h"

namespace numalign {

// Accepts "" (the empty set), and numbers and ranges separated by commas, in any order,
// overlapping, repeated, with leading zeros or a '+' sign. Refuses spaces, empty parts, descending
// ranges, negative numbers, strides and ids above IdSet<Tag>::kMaxId with kInvalidList; the message
// names the wrong part.
template <class Tag>
Result<IdSet<Tag>> parse_id_list(std::string_view text);

template <class Tag>
std::string format_id_list(const IdSet<Tag>& set);

extern template Result<CpuSet> parse_id_list<CpuTag>(std::string_view);
extern template Result<NodeSet> parse_id_list<NodeTag>(std::string_view);
extern template std::string format_id_list<CpuTag>(const CpuSet&);
extern template std::string format_id_list<NodeTag>(const NodeSet&);

}  // namespace numalign
