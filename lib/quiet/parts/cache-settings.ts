// The settings of the part `cache`: the masks of the default group, and one group for each grant.

import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { PartDemand, Setting } from '../kernel/setting.js';
import { RESCTRL } from '../resctrl/cache-info.js';
import { widestRun } from '../resctrl/cache-ways.js';
import {
  ABSENT,
  parseGroup,
  pathOfGroup,
  printGroup,
  readGroup,
  writeGroup,
  writeSchemata,
} from '../resctrl/group.js';
import { mapMasks, parseSchemata, printSchemata, waysOf } from '../resctrl/schemata.js';
import type { CachePlan } from './cache-plan.js';

/** The path of the default group. */
export const DEFAULT_PATH = `${RESCTRL}/schemata`;

// The ways of one cache that the demanding grants have, except one grant.
function takenWays(plan: CachePlan, id: number, { demands }: PartDemand, except?: string): number {
  let ways = 0;
  for (const { uid } of demands) if (uid !== except) ways |= plan.masks.get(uid)?.get(id) ?? 0;
  return ways >>> 0;
}

const union = (sets: Iterable<CpuSet>) => [...sets].reduce((all, set) => all.union(set), CpuSet.EMPTY);

/**
 * What the grants leave to the default group: the widest run of ways on each cache, since the
 * kernel only takes contiguous masks.
 */
export function defaultSetting(files: KernelFiles, plan: CachePlan): Setting {
  return {
    path: DEFAULT_PATH,
    identity: null,
    title: 'the default group of resctrl',
    read() {
      const group = readGroup(files, RESCTRL);
      return group && printSchemata(group.schemata);
    },
    write: (value) => writeSchemata(files, RESCTRL, value),
    target: (base, demand) =>
      printSchemata(
        mapMasks(parseSchemata(base), (mask, id) => {
          const otherWays = takenWays(plan, id, demand);
          return (mask & otherWays) === 0 ? mask : widestRun((mask & ~otherWays) >>> 0);
        }),
      ),
    disturbs(value, { demands }) {
      const masks = parseSchemata(value);
      const uids = new Set(demands.map(({ uid }) => uid));
      const shared = plan.claims
        .filter(({ uid }) => uids.has(uid))
        .flatMap(({ uid, cpusOf }) =>
          [...cpusOf].filter(
            ([id]) => (waysOf(masks, id, 'any') & (plan.masks.get(uid)?.get(id) ?? 0)) !== 0,
          ),
        );
      return union(shared.map(([, cpus]) => cpus));
    },
  };
}

/** A group for a grant; absent if the grant has ended or cannot get its ways. */
export function groupSetting(files: KernelFiles, plan: CachePlan, path: string): Setting {
  const claim = plan.claims.find((each) => each.path === path);
  const read = () => {
    const group = readGroup(files, path);
    return group === undefined ? ABSENT : printGroup(group);
  };
  return {
    path,
    identity: null,
    title: claim ? `the resctrl group of grant ${claim.uid}` : `the resctrl group ${path}`,
    read,
    write: (value) => writeGroup(files, path, parseGroup(value)),
    target(_base, demand) {
      const isDemanded = claim !== undefined && demand.demands.some(({ uid }) => uid === claim.uid);
      const masks = isDemanded ? plan.masks.get(claim.uid) : undefined;
      if (masks === undefined || masks.size === 0) return ABSENT;
      const schemata = mapMasks(plan.base, (_mask, id) => {
        const mask = masks.get(id);
        if (mask !== undefined) return mask;
        // None of its CPUs use this cache: its current ways will do if no other grant has them.
        const current = claim!.current === undefined ? 0 : waysOf(claim!.current, id, 'every');
        const isFree = current !== 0 && (current & takenWays(plan, id, demand, claim!.uid)) === 0;
        return isFree ? current : plan.rest.get(id)!;
      });
      return printGroup({
        schemata,
        cpus: union([...claim!.cpusOf].filter(([id]) => masks.has(id)).map(([, cpus]) => cpus)),
      });
    },
    disturbs(value, { topology, demands }) {
      const demand = demands.find(({ uid }) => pathOfGroup(uid) === path);
      if (demand === undefined) return CpuSet.EMPTY;
      const group = parseGroup(value);
      const masks = plan.masks.get(demand.uid);
      const reached = [...(claim?.cpusOf ?? [])].filter(([id]) => {
        const mask = masks?.get(id);
        return mask !== undefined && group !== undefined && waysOf(group.schemata, id, 'any') === mask;
      });
      const quiet = union(reached.map(([, cpus]) => cpus)).intersection(group?.cpus ?? CpuSet.EMPTY);
      return demand.cpus.intersection(topology.cpus).difference(quiet);
    },
  };
}
