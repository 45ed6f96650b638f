// CachePlan: which ways of which L3 cache each grant gets, according to resctrl's current state.
import type { CacheShare } from '../../account/pod-assignment.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { PartDemand } from '../kernel/setting.js';
import { type CacheInfo, RESCTRL, readCacheIds, readMostGroups } from '../resctrl/cache-info.js';
import { cacheWays } from '../resctrl/cache-ways.js';
import { groupPaths, pathOfGroup, readGroup } from '../resctrl/group.js';
import { type Schemata, waysOf } from '../resctrl/schemata.js';

/** One grant that asks for its own ways. */
export interface CacheClaim {
  readonly uid: string;
  readonly path: string;
  /** The number of ways of each cache. */
  readonly ways: number;
  /** Its online CPUs, by the id of their cache. */
  readonly cpusOf: ReadonlyMap<number, CpuSet>;
  /** What its group has now; undefined if there is no group. */
  readonly current: Schemata | undefined;
}

/** Ways that a claim cannot get. */
export interface CacheShortage {
  readonly claim: CacheClaim;
  readonly cache: number;
  /** The most ways that it could get. */
  readonly most: number;
}

export interface CachePlan {
  /** The exclusive ways of each served claim, by grant and cache id. */
  readonly masks: ReadonlyMap<string, ReadonlyMap<number, number>>;
  /** What the default group can have, by cache id; for caches without a claim, what it has now. */
  readonly rest: ReadonlyMap<number, number>;
  readonly claims: readonly CacheClaim[];
  readonly shortages: readonly CacheShortage[];
  /** Claims for which no class of service is left. */
  readonly unclassed: readonly CacheClaim[];
  /** Groups that are not numalign's. */
  readonly others: ReadonlyMap<string, Schemata>;
  readonly base: Schemata;
}

const countWays = (mask: number): number => mask.toString(2).replaceAll('0', '').length;

/** The number of ways, rounded up and at least 1. */
function waysOfShare(share: CacheShare, { all, minBits }: CacheInfo): number {
  // 7 % of 100 is 7.000000000000001 in floating point.
  const ways = 'ways' in share ? share.ways : Math.ceil((countWays(all) * share.percent) / 100 - 1e-9);
  return Math.max(ways, minBits);
}

function claimsOf(files: KernelFiles, info: CacheInfo, { topology, demands }: PartDemand): CacheClaim[] {
  return demands.flatMap(({ uid, cpus, request }) => {
    const online = cpus.intersection(topology.cpus);
    if (online.isEmpty) return [];
    const cpusOf = new Map<number, CpuSet>();
    for (const [cpu, id] of readCacheIds(files, online)) {
      cpusOf.set(id, (cpusOf.get(id) ?? CpuSet.EMPTY).union(CpuSet.of(cpu)));
    }
    const path = pathOfGroup(uid);
    const current = readGroup(files, path)?.schemata;
    return [{ uid, path, ways: waysOfShare(request.cache!, info), cpusOf, current }];
  });
}

/** `paths`: groups that numalign made for grants, of which some have ended. */
export function planCache(
  files: KernelFiles,
  info: CacheInfo,
  demand: PartDemand,
  paths: readonly string[],
): CachePlan {
  const base = readGroup(files, RESCTRL)!.schemata;
  const claims = claimsOf(files, info, demand);
  const claimPaths = new Set(claims.map(({ path }) => path));
  const others = new Map<string, Schemata>();
  const endedGroups: Schemata[] = [];
  for (const path of groupPaths(files)) {
    const group = claimPaths.has(path) ? undefined : readGroup(files, path);
    if (group === undefined) continue;
    if (paths.includes(path)) endedGroups.push(group.schemata);
    else others.set(path, group.schemata);
  }
  const ids = [...new Set([...base.values()].flatMap((masks) => [...masks.keys()]))];
  const anyOf = (list: Iterable<Schemata>, id: number) =>
    [...list].reduce((all, each) => (all | waysOf(each, id, 'any')) >>> 0, 0);

  // New groups can be made as long as classes of service are left.
  let freeClasses = readMostGroups(files) - 1 - groupPaths(files).length;
  const unclassed = claims.filter(({ current }) => current === undefined && --freeClasses < 0);

  const refused = new Map<CacheClaim, number>();
  // A grant gets ways of all its caches or of none. The first claim that cannot be served is
  // refused for good; the others are then planned without it.
  for (;;) {
    const masks = new Map<string, Map<number, number>>();
    const rest = new Map<number, number>();
    const most = new Map<number, number>();
    const lacking = new Map<CacheClaim, number>();
    const served = claims.filter((claim) => !refused.has(claim) && !unclassed.includes(claim));
    for (const claim of served) masks.set(claim.uid, new Map());
    for (const id of ids) {
      const requests = served.filter(({ cpusOf }) => cpusOf.has(id));
      const current = waysOf(base, id, 'every');
      const answer = cacheWays({
        ...info,
        foreign: anyOf(others.values(), id),
        base: current,
        released: anyOf(endedGroups, id),
        requests: requests.map(({ ways, current }) => ({
          ways,
          current: current === undefined ? 0 : waysOf(current, id, 'every'),
        })),
      });
      rest.set(id, requests.length === 0 ? current : answer.rest);
      most.set(id, answer.most);
      requests.forEach((claim, i) => {
        if (answer.masks[i] !== 0) masks.get(claim.uid)!.set(id, answer.masks[i]!);
        else if (!lacking.has(claim)) lacking.set(claim, id);
      });
    }
    const first = served.find((claim) => lacking.has(claim));
    if (first !== undefined) {
      refused.set(first, lacking.get(first)!);
      continue;
    }
    const shortages = [...refused].map(([claim, cache]) => ({ claim, cache, most: most.get(cache)! }));
    return { masks, rest, claims, shortages, unclassed, others, base };
  }
}
