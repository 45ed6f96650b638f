// ThreadPlacement: which kind of threads of this process runs on which CPUs of a grant.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { native } from '../base/native.js';
import type { ThreadRole } from '../base/native-threads.js';
import { type PinResult, toPinResult, toTid } from '../machine/affinity.js';
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
 * Where the threads of one kind run. A list of CPUs of the grant: each thread on any of them.
 * `oneToOne`: each thread on one CPU, spread evenly, CPUs without JavaScript first; `'one-to-one'` is
 * short for that on all CPUs. `part`: on that part of the grant, else on the CPUs that no part has.
 * `'shared'`: in the shared pool, which the threads follow as it changes; for `mixed` grants.
 */
export type ThreadCpus = CpuSet | string | { part?: string; cpus?: CpuSet | string; oneToOne?: boolean };

/** Where each kind of thread runs. Kinds that you leave out run on all CPUs that no part has. */
export interface ThreadPlacement {
  /**
   * The main thread.
   * @default all CPUs that no part has
   */
  main?: ThreadCpus;
  /**
   * Workers that {@link Grant.worker} started, or that have loaded numalign.
   * @default all CPUs that no part has
   */
  workers?: ThreadCpus;
  /**
   * The threads of libuv's pool.
   * @default all CPUs that no part has
   */
  pool?: ThreadCpus;
  /**
   * V8's helper threads, which the main thread waits for during garbage collection. Node 20 does not
   * name them: there they are among `others`, and both must be the same.
   * @default all CPUs that no part has
   */
  v8?: ThreadCpus;
  /**
   * All other threads.
   * @default all CPUs that no part has
   */
  others?: ThreadCpus;
}

/** The options of {@link Grant.placeThreads}. */
export interface PlaceThreadsOptions extends ThreadPlacement {
  /**
   * Takes threads over that are pinned for another grant. Otherwise these are ERR_ALREADY_PINNED.
   * @default `false`
   */
  replace?: boolean;
}

/** What became of the threads of each kind, see {@link Grant.placeThreads}. */
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

/** Of threads that run in the shared pool. */
export const SHARED = 'shared';

/** undefined: in the shared pool. */
type Places = Readonly<Record<(typeof KINDS)[number], ThreadPlace | undefined>>;

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

/** undefined: in the shared pool. @throws ERR_ENFORCEMENT, and as {@link parsePlace} */
function parsePlaceOrPool(
  target: GrantedThreads,
  kind: string,
  value: ThreadCpus | undefined,
): ThreadPlace | undefined {
  if (value !== SHARED) return parsePlace(target, kind, value);
  if (!target.share) {
    const valid = `CPUs of the grant (${target.cpus}): nothing of the shared pool is booked for it, as acquire({ cpu: 2.5, mixed: true }) does`;
    invalidOption(kind, value, valid);
  }
  target.group?.checkSingleThreads();
  return undefined;
}

function parsePlaces(target: GrantedThreads, options: PlaceThreadsOptions): Places {
  const areNamed = native.threads().some(({ role }) => role === 'v8');
  const { v8, others } = options;
  const placeOf = (kind: string, value: ThreadCpus | undefined) => parsePlaceOrPool(target, kind, value);
  const places: Places = {
    main: placeOf('main', options.main),
    workers: placeOf('workers', options.workers),
    pool: placeOf('pool', options.pool),
    v8: placeOf('v8', areNamed ? v8 : (v8 ?? others)),
    others: placeOf('others', areNamed ? others : (others ?? v8)),
  };
  if (!areNamed && !isSame(places.v8, places.others)) {
    const shown = ({ v8: a, others: b }: Places) => [a, b].map((place) => place?.cpus.toString() ?? SHARED);
    const [given, other] = shown(places);
    invalidOption(
      'v8',
      given,
      `the same as others (${other}): Node ${process.versions.node} does not name its threads, so that V8's helpers cannot be told from others`,
    );
  }
  return places;
}

const isSame = (a: ThreadPlace | undefined, b: ThreadPlace | undefined) =>
  a && b ? a.oneEach === b.oneEach && a.cpus.equals(b.cpus) : a === b;

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
  const shared = await shareThreads(target(), parsePlaces(target(), options), replace);
  const granted = target();
  const places = byRole(parsePlaces(granted, options));
  // Of a cgroup that the whole process enters, all threads would have its CPUs.
  const entering = shared ? threadsOf((role) => places[role] !== undefined) : ['process' as const];
  const outcomes = inGroup(granted, entering, replace, () => placeByRole(granted, places, replace));
  const resultOf = (role: ThreadRole, allKnown: boolean) =>
    shared && places[role] === undefined
      ? partOf(
          shared,
          threadsOf((each) => each === role),
        )
      : toPinResult(outcomes[role], !allKnown);
  return {
    main: resultOf('main', true),
    workers: resultOf('worker', false),
    pool: resultOf('pool', complete),
    v8: resultOf('v8', false),
    others: resultOf('other', false),
    guaranteed: false,
  };
}

function byRole({ main, workers, pool, v8, others }: Places) {
  return { main, worker: workers, pool, v8, other: others };
}

function threadsOf(isMeant: (role: ThreadRole) => boolean): number[] {
  return native.threads().flatMap(({ tid, role }) => (isMeant(role) ? tid : []));
}

/** What became of some of the threads that were moved. */
function partOf({ moved, unmovable }: PinResult, tids: readonly number[]): PinResult {
  const isMeant = ({ tid }: { tid: number }) => tids.includes(tid);
  return { moved: moved.filter(isMeant), unmovable: unmovable.filter(isMeant), guaranteed: false };
}

// First: where this fails, nothing is moved. Undefined where no threads are to be in the shared pool.
async function shareThreads(
  { grant, share }: GrantedThreads,
  asked: Places,
  replace: boolean,
): Promise<PinResult | undefined> {
  const places = byRole(asked);
  if (!share || Object.values(places).every((place) => place !== undefined)) return undefined;
  if (!replace) native.checkNotPinned(toTid('process'), grant);
  return share(threadsOf((role) => places[role] === undefined));
}
