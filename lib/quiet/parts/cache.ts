// Cache: gives a grant its own ways of the L3 caches of its CPUs, in a resctrl group (Cache
// Allocation Technology; Documentation/filesystems/resctrl.rst). The default group has the rest: it
// shrinks before the groups are made, and grows after they are removed.
import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { Part, PartDemand } from '../kernel/setting.js';
import { isMounted, RESCTRL, readCacheInfo, readMostGroups } from '../resctrl/cache-info.js';
import { groupPaths, isPathOfGroup } from '../resctrl/group.js';
import { type CachePlan, type CacheShortage, planCache } from './cache-plan.js';
import { DEFAULT_PATH, defaultSetting, groupSetting } from './cache-settings.js';

const nameOf = (path: string) => path.slice(RESCTRL.length + 1);

// Ways in list form: `8-11`.
const listOf = (mask: number) => String(new CpuSet(Uint32Array.of(mask)));

function shortageText(plan: CachePlan, { claim, cache, most }: CacheShortage, all: number): string {
  const holders = [
    ...[...plan.masks].map(([uid, masks]) => [`grant ${uid}`, masks.get(cache) ?? 0] as const),
    ...[...plan.others].map(([path, schemata]) => {
      const masks = [...schemata.values()].map((line) => line.get(cache) ?? 0);
      return [`the group ${nameOf(path)}`, masks.reduce((sum, mask) => (sum | mask) >>> 0, 0)] as const;
    }),
  ].filter(([, mask]) => mask !== 0);
  const holdings = holders.map(([name, mask]) => `${name} has ${listOf(mask)}`);
  const facts = [`L3 cache ${cache} has the ways ${listOf(all)}`, ...holdings].join(', ');
  const advice =
    most > 0 ? `ask for at most ${most}` : 'release a grant that has some, or remove a group (rmdir)';
  return `${facts}: no ${claim.ways} neighbouring ways are left for grant ${claim.uid} and some for the default group; ${advice}`;
}

function closidText(files: KernelFiles, { unclassed }: CachePlan): string[] {
  if (unclassed.length === 0) return [];
  const paths = groupPaths(files);
  const names = ['the default group', ...paths.map(nameOf)].join(', ');
  const grants = unclassed.map(({ uid }) => uid).join(', ');
  return [
    `resctrl has ${readMostGroups(files)} classes of service, and all are in use (${names}): none is left for grant ${grants}; remove an unused group (rmdir)`,
  ];
}

function unknownCpus(plan: CachePlan, { topology, demands }: PartDemand): CpuSet {
  const caches = plan.claims.flatMap(({ cpusOf }) => [...cpusOf]);
  return demands
    .reduce((all, { cpus }) => all.union(cpus.intersection(topology.cpus)), CpuSet.EMPTY)
    .difference(
      caches.reduce((all, [id, cpus]) => (plan.rest.has(id) ? all.union(cpus) : all), CpuSet.EMPTY),
    );
}

/** Ways of the L3 caches. */
export const cache: Part = {
  name: 'cache',

  settings(files, demand, paths) {
    const info = readCacheInfo(files);
    if (info === undefined) return [];
    const plan = planCache(files, info, demand, paths);
    const endedPaths = paths.filter(
      (path) => isPathOfGroup(path) && plan.claims.every((claim) => claim.path !== path),
    );
    const isNeeded = paths.includes(DEFAULT_PATH) || plan.claims.length > 0;
    return [
      ...(isNeeded ? [defaultSetting(files, plan)] : []),
      ...endedPaths.filter((path) => files.exists(path)).map((path) => groupSetting(files, plan, path)),
      ...plan.claims.map(({ path }) => groupSetting(files, plan, path)),
    ];
  },

  hidden: (files, records) => (isMounted(files) ? [] : records),

  obstacles(files, demand) {
    if (!isMounted(files))
      return [
        `resctrl is not mounted: mount -t resctrl resctrl ${RESCTRL} (as root; x86 with CAT, or ARM with MPAM)`,
      ];
    const info = readCacheInfo(files);
    if (info === undefined)
      return ['the L3 caches of this machine cannot be allotted: resctrl shows no info/L3/cbm_mask (no CAT)'];
    const plan = planCache(files, info, demand, []);
    const unknown = unknownCpus(plan, demand);
    return [
      ...(unknown.isEmpty
        ? []
        : [`resctrl knows no L3 cache of the CPUs ${unknown}: they share their cache`]),
      ...plan.shortages.map((shortage) => shortageText(plan, shortage, info.all)),
      ...closidText(files, plan),
    ];
  },
};
