// Checks of cgroups: how grants can be enforced, and what else confines processes.
import { dirname } from 'node:path';
import { shellWord } from '../base/text/shell-word.js';
import { CpuSet } from '../machine/cpu-set.js';
import { command, listSome, MOST_NAMED } from './advice.js';
import type { CgroupFacts, ForeignCpuset, MachineFacts } from './facts.js';
import { ok, problem, unknown, type Verdict, warning } from './finding.js';
import { CAP_SYS_NICE, has } from './process-checks.js';

export function cgroups(facts: MachineFacts): Verdict {
  const { cgroups } = facts;
  if (typeof cgroups === 'string') {
    return warning(
      cgroups,
      'mount cgroup v2 at /sys/fs/cgroup, or choose `--cgroup-root`; until then only masks are used',
    );
  }
  const { version, root, rootPath, isUsed, rootRefusal, whyNotWritable, delegated } = cgroups;
  if (whyNotWritable !== undefined) {
    const other =
      delegated === undefined ? 'a cgroup that is delegated' : `\`--cgroup-root ${shellWord(delegated)}\``;
    return warning(`v${version}, not for this user: ${whyNotWritable}`, `run as root, or with ${other}`);
  }
  if (rootRefusal) return warning(`v${version}, not for root: ${rootRefusal.why}`, rootRefusal.advice);
  const found = `v${version}, ${rootPath} can be used`;
  return isUsed
    ? ok(found)
    : warning(`${found}, but is not`, command(facts, `configure --cgroup-root ${shellWord(root)}`));
}

export function delegation({ cgroups }: MachineFacts): Verdict {
  if (typeof cgroups === 'string') return unknown('no cgroups can be seen from here');
  const { version, root, whyNotWritable, own, delegated } = cgroups;
  if (whyNotWritable === undefined) return ok(`not needed: this user may use ${root}`);
  if (delegated !== undefined) return ok(`this user may make cgroups below ${dirname(delegated)}`);
  if (own === undefined) return unknown('the cgroup of this process cannot be seen from here');
  const found = `neither ${own} nor a cgroup above it is delegated to this user`;
  if (version === 1) {
    return warning(
      found,
      'as root, make a cgroup that this user owns (`chown -R`), and give `--cgroup-root` below it',
    );
  }
  const unit = '`Delegate=cpuset` and `DelegateSubgroup=main`';
  return warning(
    found,
    `start from a systemd unit with ${unit}, and give \`--cgroup-root\` below the unit's cgroup`,
  );
}

/** The strongest level of a grant made here. */
export function enforcement(facts: MachineFacts): Verdict {
  const { cgroups, user, capabilities } = facts;
  if (typeof cgroups === 'string' || !isUsable(cgroups)) {
    const movesOthers = capabilities === null ? user === 0 : has(capabilities, CAP_SYS_NICE);
    return warning(
      `members: ${movesOthers ? 'shared members' : 'shared members of this user'} are kept off by their masks, other processes are not`,
      'see the check of cgroups',
    );
  }
  if (cgroups.version === 1) {
    return warning(
      'cpuset for shared members that are in no other cgroup, members for others; cgroup v1 has no partitions',
      'boot with cgroup v2 (`systemd.unified_cgroup_hierarchy=1`): then the kernel keeps all others off',
    );
  }
  if (cgroups.whyNoPartition !== undefined) {
    return warning(
      `cpuset for shared members in cgroups below ${cgroups.rootPath}, members for others; no partition: ${cgroups.whyNoPartition}`,
      `as root \`--cgroup-root /numalign\`, directly below the root of the machine; or put what is to be kept off into a cgroup below ${cgroups.rootPath}, and ${command(facts, 'share PATH')} with its folder`,
    );
  }
  return ok('partition, or isolated on request: the kernel keeps all others off');
}

const isUsable = ({ isUsed, rootRefusal, whyNotWritable }: CgroupFacts) =>
  isUsed && rootRefusal === undefined && whyNotWritable === undefined;

export function cpuQuota({ limits, allowed }: MachineFacts): Verdict {
  if (limits === null) return unknown('the cgroups of this process cannot be read');
  const { cpuMax } = limits;
  if (cpuMax === null) return ok('none at or above this process');
  const times = cpuMax.throttled?.nrThrottled ?? 0;
  const found = `${cpuMax.path} may use ${cpuMax.cpus} CPUs at a time, and was throttled ${times} times`;
  const lift = 'lift it (`CPUQuota=` of systemd, `--cpus` of containers, `cpuCFSQuota` of the kubelet)';
  const whole = Math.floor(cpuMax.cpus);
  // A grant has at least one CPU.
  const advice = whole < 1 ? lift : `${lift}, or ask for at most ${whole} CPU${whole === 1 ? '' : 's'}`;
  if (times > 0) return problem(`${found}: its threads stand still, on granted CPUs too`, advice);
  return cpuMax.cpus >= allowed.size ? ok(found) : warning(found, advice);
}

const CONTAINER = /(^|\/)(docker|libpod|crio|cri-containerd|nerdctl)[-/]|\/lxc\//;

function kindOf(path: string): string {
  if (path.includes('kubepods')) return 'a pod';
  if (CONTAINER.test(path)) return 'a container';
  return /\.(slice|service|scope)$/.test(path) ? 'AllowedCPUs= of systemd' : 'a cgroup';
}

export function cpusets(facts: MachineFacts): Verdict {
  const { foreignCpusets, candidates, managed } = facts;
  if (foreignCpusets === null) return unknown('no cgroups with cpusets can be seen from here');
  const near = foreignCpusets.cpusets.filter(({ cpus }) => cpus.intersects(candidates));
  const text = ({ path, cpus, isPartition }: ForeignCpuset) =>
    `${path} (${isPartition ? 'a partition' : kindOf(path)}) has ${cpus}`;
  const partitions = near.filter(({ isPartition }) => isPartition);
  const without = (cpusets: readonly ForeignCpuset[]) => {
    const remaining = managed.difference(cpusets.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY));
    // One CPU stays shared: a single CPU could never be granted.
    const isOfUse = remaining.size > 1 && remaining.intersects(candidates);
    return isOfUse ? [command(facts, `configure --managed ${remaining}`)] : [];
  };
  if (partitions.length > 0) {
    const ways = [
      ...without(partitions),
      ...partitions.slice(0, MOST_NAMED).map((one) => endPartition(foreignCpusets.mount, one)),
    ];
    return problem(`the kernel keeps numalign off: ${listSome(partitions, text)}`, ways.join(', or '));
  }
  if (near.length > 0) {
    const leave = `have them leave, ${command(facts, 'share PATH')} with the folder of each; CPUs that a cgroup beside it names become no partition`;
    return warning(
      `other cgroups have CPUs that numalign grants: ${listSome(near, text)}`,
      [...without(near), leave].join(', or '),
    );
  }
  const found = 'no other cgroup has CPUs that numalign grants';
  return foreignCpusets.isComplete
    ? ok(found)
    : unknown(`${found}, but there are too many cgroups to look at all of them`);
}

const endPartition = (mount: string, { path }: ForeignCpuset) =>
  `\`echo member > ${shellWord(`${mount}${path}/cpuset.cpus.partition`)}\``;
