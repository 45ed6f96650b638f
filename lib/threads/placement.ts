// ThreadPlacement: which kind of threads of this process runs on which CPUs of a grant.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { native } from '../base/native.js';
import type { ThreadRole } from '../base/native-threads.js';
import { type PinResult, toPinResult } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import {
  cpusWithin,
  type GrantedThreads,
  inGroup,
  placeByRole,
  type ThreadPlace,
} from './granted-threads.js';
import { probePool } from './pool.js';

/**
 * Where threads of one kind run: CPUs of the grant, each thread on any of them; or with `oneToOne`
 * each on one of its own (where there are more threads than CPUs, as few on each as can be),
 * `'one-to-one'` for short, out of all CPUs of the grant. A CPU that runs no JavaScript yet is
 * preferred. `part`: on that part of the grant; without it on CPUs that no part has.
 */
export type ThreadCpus = CpuSet | string | { part?: string; cpus?: CpuSet | string; oneToOne?: boolean };

/** Kinds that are left out: all CPUs of the grant that no part has. */
export interface ThreadPlacement {
  /** The main thread. */
  main?: ThreadCpus;
  /** Workers that were started by {@link Grant.worker}, or have loaded numalign. */
  workers?: ThreadCpus;
  /** The threads of libuv's pool. */
  pool?: ThreadCpus;
  /**
   * V8's helpers, for which the main thread waits in a garbage collection. Node 20 does not name
   * them: there they are among the others, and the two go to the same place.
   */
  v8?: ThreadCpus;
  /** All others. */
  others?: ThreadCpus;
}

export interface PlaceThreadsOptions extends ThreadPlacement {
  /** Take over threads that are pinned for another grant, instead of ERR_ALREADY_PINNED. */
  replace?: boolean;
}

export interface PlaceThreadsResult {
  /** `guaranteed`: it is where it was put. */
  readonly main: PinResult;
  /** Those that are known. */
  readonly workers: PinResult;
  /** `guaranteed`: all of them were found, and are where they were put. */
  readonly pool: PinResult;
  /** Empty on Node 20, which does not name them. */
  readonly v8: PinResult;
  readonly others: PinResult;
  /**
   * Never: threads may be born while /proc/self/task is read. Those that threads of this process
   * start later are born where these are.
   */
  readonly guaranteed: false;
}

const KINDS = ['main', 'workers', 'pool', 'v8', 'others'] as const;
type Places = Readonly<Record<(typeof KINDS)[number], ThreadPlace>>;

type Place = Exclude<ThreadCpus, string | CpuSet>;

/** What can be said without the grant. @throws ERR_INVALID_OPTION */
export function checkPlace(kind: string, value: ThreadCpus | undefined): Place {
  if (value === undefined || typeof value === 'string' || value instanceof CpuSet) return {};
  const given = checkOptions(value, ['part', 'cpus', 'oneToOne'], kind) as Place;
  const { oneToOne = false } = given;
  if (typeof oneToOne !== 'boolean') invalidOption(`${kind}.oneToOne`, oneToOne, 'true or false');
  return given;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_UNKNOWN_PART */
export function parsePlace(grant: GrantedThreads, kind: string, value: ThreadCpus | undefined): ThreadPlace {
  const { part } = grant;
  if (value === 'one-to-one') return { part, cpus: grant.cpus, oneEach: true };
  if (value === undefined || typeof value === 'string' || value instanceof CpuSet) {
    return { part, cpus: cpusWithin(grant, kind, value), oneEach: grant.oneToOne };
  }
  const given = checkPlace(kind, value);
  const target = given.part === undefined ? grant : grant.onPart(given.part);
  const { oneToOne = target.oneToOne } = given;
  if (target.oneToOne && !oneToOne)
    invalidOption(`${kind}.oneToOne`, false, 'true: the CPUs of the grant are isolated');
  const cpus = cpusWithin(target, `${kind}.cpus`, given.cpus);
  return { part: target.part, cpus, oneEach: oneToOne };
}

function parsePlaces(target: GrantedThreads, options: PlaceThreadsOptions): Places {
  const areNamed = native.threads().some(({ role }) => role === 'v8');
  const { v8, others } = options;
  const places: Places = {
    main: parsePlace(target, 'main', options.main),
    workers: parsePlace(target, 'workers', options.workers),
    pool: parsePlace(target, 'pool', options.pool),
    v8: parsePlace(target, 'v8', areNamed ? v8 : (v8 ?? others)),
    others: parsePlace(target, 'others', areNamed ? others : (others ?? v8)),
  };
  const isSame = places.v8.oneEach === places.others.oneEach && places.v8.cpus.equals(places.others.cpus);
  if (!areNamed && !isSame) {
    invalidOption(
      'v8',
      String(places.v8.cpus),
      `the same as others (${places.others.cpus}): Node ${process.versions.node} does not name its threads, so that V8's helpers cannot be told from others`,
    );
  }
  return places;
}

/** What can be said without the grant. @throws ERR_INVALID_OPTION */
export function checkPlaces(options: PlaceThreadsOptions): { replace: boolean; places: readonly Place[] } {
  const { replace = false } = checkOptions(
    options,
    [...KINDS, 'replace'],
    'placeThreads',
  ) as PlaceThreadsOptions;
  if (typeof replace !== 'boolean') invalidOption('replace', replace, 'true or false');
  return { replace, places: KINDS.map((kind) => checkPlace(kind, options[kind])) };
}

/** `target` is asked again after the wait: the grant may have changed, or gone. */
export async function placeThreads(
  target: () => GrantedThreads,
  options: PlaceThreadsOptions,
): Promise<PlaceThreadsResult> {
  const { replace } = checkPlaces(options);
  parsePlaces(target(), options);
  const { complete } = await probePool();
  const granted = target();
  const places = parsePlaces(granted, options);
  const { main, workers, pool, v8, others } = places;
  const outcomes = inGroup(granted, ['process'], replace, () =>
    placeByRole(granted, { main, worker: workers, pool, v8, other: others }, replace),
  );
  const resultOf = (role: ThreadRole, allKnown: boolean) => toPinResult(outcomes[role], !allKnown);
  return {
    main: resultOf('main', true),
    workers: resultOf('worker', false),
    pool: resultOf('pool', complete),
    v8: resultOf('v8', false),
    others: resultOf('other', false),
    guaranteed: false,
  };
}
