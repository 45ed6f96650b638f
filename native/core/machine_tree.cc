#include "core/machine_tree.h"

#include <algorithm>
#include <climits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace numalign {
namespace {

// Gives each distinct (L3, package) an id: the L3's own if it lies in one package, else an unused
// one.
class L3Ids {
 public:
  // `none`: the id for CPUs without an L3; above all others.
  explicit L3Ids(int none) : none_(none), next_(none) {}

  int id(int l3, int package) {
    if (none_ == 0) return package;  // no L3 on the machine
    auto [found, is_new] = by_place_.try_emplace({l3, package}, l3);
    if (is_new && !taken_.insert(l3).second) found->second = ++next_;
    return found->second;
  }

 private:
  int none_, next_;
  std::map<std::pair<int, int>, int> by_place_;
  std::set<int> taken_;
};

}  // namespace

bool is_ordinary_memory(std::string_view subtype) { return subtype.empty() || subtype == "DRAM"; }

int MachineTree::add(Kind kind, int parent, std::optional<unsigned> id) {
  objects_.push_back({kind, parent, id});
  return static_cast<int>(objects_.size()) - 1;
}

void MachineTree::attach(int object, int node, bool is_ordinary) {
  Object& near = objects_[static_cast<size_t>(object)];
  if (near.node < 0) near.node = node;
  if (is_ordinary && near.ordinary_node < 0) near.ordinary_node = node;
  for (int at = object; at != kNoParent; at = objects_[static_cast<size_t>(at)].parent) {
    int& lowest = objects_[static_cast<size_t>(at)].node_within;
    if (lowest < 0 || node < lowest) lowest = node;
  }
}

// kNoParent if there is none.
int MachineTree::ancestor(Kind kind, int object) const {
  while (object != kNoParent && objects_[static_cast<size_t>(object)].kind != kind) {
    object = objects_[static_cast<size_t>(object)].parent;
  }
  return object;
}

int MachineTree::nearest_node(int pu) const {
  for (int Object::*node : {&Object::ordinary_node, &Object::node, &Object::node_within}) {
    for (int at = pu; at != kNoParent; at = objects_[static_cast<size_t>(at)].parent) {
      if (objects_[static_cast<size_t>(at)].*node >= 0) return objects_[static_cast<size_t>(at)].*node;
    }
  }
  return 0;
}

// The ids of the objects of a kind, by object: those of Linux if all have one and no two are the
// same, else their positions. The last id, above all of them, is for CPUs outside any such object.
std::vector<int> MachineTree::ids_of(Kind kind) const {
  std::vector<int> ids(objects_.size() + 1);
  std::set<unsigned> linux_ids;
  bool usable = true;
  int count = 0, greatest = -1;
  for (const Object& object : objects_) {
    if (object.kind == kind) {
      usable = usable && object.id && *object.id < INT_MAX / 2 && linux_ids.insert(*object.id).second;
    }
  }
  for (size_t i = 0; i < objects_.size(); i++) {
    if (objects_[i].kind != kind) continue;
    ids[i] = usable ? static_cast<int>(*objects_[i].id) : count++;
    greatest = std::max(greatest, ids[i]);
  }
  ids.back() = greatest + 1;
  return ids;
}

std::vector<int> MachineTree::pus_by_id() const {
  std::vector<int> pus;
  for (size_t i = 0; i < objects_.size(); i++) {
    if (objects_[i].kind == Kind::kPu) pus.push_back(static_cast<int>(i));
  }
  std::ranges::sort(pus, {}, [&](int pu) { return objects_[static_cast<size_t>(pu)].id; });
  return pus;
}

Result<std::vector<CpuInfo>> MachineTree::cpus(const std::map<int, int>& node_of_cpu) const {
  std::vector<int> pus = pus_by_id();
  if (pus.empty()) return Error{ErrorCode::kHwloc, "the machine has no CPU"};
  std::optional<unsigned> last = objects_[static_cast<size_t>(pus.back())].id;
  if (!last || *last > CpuSet::kMaxId) {
    return Error{ErrorCode::kHwloc, "CPU id " + std::to_string(last.value_or(UINT_MAX)) + " is above " +
                                        std::to_string(CpuSet::kMaxId)};
  }
  auto id_in = [&](const std::vector<int>& ids, int object) {
    return object == kNoParent ? ids.back() : ids[static_cast<size_t>(object)];
  };
  std::vector<int> package_ids = ids_of(Kind::kPackage), l3_ids = ids_of(Kind::kL3Cache);
  L3Ids l3s(l3_ids.back());
  // CPUs come in ascending order, so the first one is the lowest. The keys hold everything that a
  // core or die must not span.
  std::map<std::tuple<int, int, int, int>, int> first_of_core;
  std::map<std::pair<int, int>, int> first_of_die;
  std::vector<CpuInfo> cpus;
  for (int pu : pus) {
    CpuInfo info{};
    info.cpu = static_cast<int>(*objects_[static_cast<size_t>(pu)].id);
    auto linux_node = node_of_cpu.find(info.cpu);
    info.node = linux_node != node_of_cpu.end() ? linux_node->second : nearest_node(pu);
    info.package = id_in(package_ids, ancestor(Kind::kPackage, pu));
    info.l3 = l3s.id(id_in(l3_ids, ancestor(Kind::kL3Cache, pu)), info.package);
    int core = ancestor(Kind::kCore, pu);
    int core_or_pu = core != kNoParent ? core : pu;
    info.core =
        first_of_core.try_emplace({core_or_pu, info.package, info.node, info.l3}, info.cpu).first->second;
    info.die = first_of_die.try_emplace({ancestor(Kind::kDie, pu), info.package}, info.cpu).first->second;
    cpus.push_back(info);
  }
  return cpus;
}

}  // namespace numalign
