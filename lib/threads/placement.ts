// ThreadPlacement: which kinds of threads of this process run on which CPUs of a grant.
import { checkNames, invalidOption } from '../base/check-options.js';
import { native } from '../base/native.js';
import type { ThreadRole } from '../base/native-threads.js';
import { option } from '../input/values/option-values.js';
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
  /** The main thread. `guaranteed`: it is where it was put. */
  readonly main: PinResult;
  /** Workers that {@link Grant.worker} started, or that have loaded numalign. */
  readonly workers: PinResult;
  /** libuv's pool. `guaranteed`: all its threads were found, and are where they were put. */
  readonly pool: PinResult;
  /** V8's helper threads. Empty on Node 20, which does not name them. */
  readonly v8: PinResult;
  /** All threads of no other kind; on Node 20 with V8's. */
  readonly others: PinResult;
  /**
   * Never true: threads may be created while /proc/self/task is read. Threads that are started
   * later inherit the place of the thread that starts them.
   */
  readonly guaranteed: false;
}

const KINDS = ['main', 'workers', 'pool', 'v8', 'others'] as const;

/** The place of threads that run in the shared pool. */
export const SHARED = 'shared';

/** Undefined: in the shared pool. */
type Places = Readonly<Record<ThreadRole, ThreadPlace | undefined>>;

type PlaceOption = Exclude<ThreadCpus, string | CpuSet>;

/** Checks what does not depend on the grant. @throws ERR_INVALID_OPTION */
export function checkPlace(kind: string, value: ThreadCpus | undefined): PlaceOption {
  if (value === undefined || typeof value === 'string' || value instanceof CpuSet) return {};
  const place = checkNames(value, ['part', 'cpus', 'oneToOne'], kind);
  option.optional(place.oneToOne, `${kind}.oneToOne`, option.flag);
  return place;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_UNKNOWN_PART */
export function parsePlace(grant: GrantedThreads, kind: string, value: ThreadCpus | undefined): ThreadPlace {
  const { part } = grant;
  if (value === 'one-to-one') return { part, cpus: grant.cpus, oneEach: true };
  if (value === undefined || typeof value === 'string' || value instanceof CpuSet) {
    return { part, cpus: cpusWithin(grant, kind, value), oneEach: grant.oneToOne };
  }
  const place = checkPlace(kind, value);
  const target = place.part === undefined ? grant : grant.onPart(place.part);
  const { oneToOne = target.oneToOne } = place;
  if (target.oneToOne && !oneToOne)
    invalidOption(`${kind}.oneToOne`, false, 'true: the CPUs of the grant are isolated');
  const cpus = cpusWithin(target, `${kind}.cpus`, place.cpus);
  return { part: target.part, cpus, oneEach: oneToOne };
}

/** Undefined: in the shared pool. @throws ERR_ENFORCEMENT, and like {@link parsePlace} */
function parsePlaceOrPool(
  target: GrantedThreads,
  kind: string,
  value: ThreadCpus | undefined,
): ThreadPlace | undefined {
  if (value !== SHARED) return parsePlace(target, kind, value);
  if (!target.share) {
    const valid = `CPUs of the grant (${target.cpus}): it has nothing of the shared pool, which acquire({ cpu: 2.5, mixed: true }) books`;
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
    worker: placeOf('workers', options.workers),
    pool: placeOf('pool', options.pool),
    v8: placeOf('v8', areNamed ? v8 : (v8 ?? others)),
    other: placeOf('others', areNamed ? others : (others ?? v8)),
  };
  if (!areNamed && !isSame(places.v8, places.other)) {
    const [shown, other] = [places.v8, places.other].map((place) => place?.cpus.toString() ?? SHARED);
    const valid = `the same as others (${other}): Node ${process.versions.node} does not name its threads, so V8's helpers cannot be distinguished from others`;
    invalidOption('v8', shown, valid);
  }
  return places;
}

const isSame = (a: ThreadPlace | undefined, b: ThreadPlace | undefined) =>
  a && b ? a.oneEach === b.oneEach && a.cpus.equals(b.cpus) : a === b;

/** Checks what does not depend on the grant. @throws ERR_INVALID_OPTION */
export function checkPlaces(options: PlaceThreadsOptions) {
  const { replace = false } = checkNames(options, [...KINDS, 'replace'], 'placeThreads');
  option.flag(replace, 'replace');
  return { replace, places: KINDS.map((kind) => checkPlace(kind, options[kind])) };
}

/** Calls `target` again after the wait: the grant may have changed or ended. */
export async function placeThreads(
  target: () => GrantedThreads,
  options: PlaceThreadsOptions,
): Promise<PlaceThreadsResult> {
  const { replace } = checkPlaces(options);
  parsePlaces(target(), options);
  const { complete } = await probePool();
  const shared = await shareThreads(target(), parsePlaces(target(), options), replace);
  const granted = target();
  const places = parsePlaces(granted, options);
  // In a cgroup that the whole process enters, all threads would have the cgroup's CPUs.
  const entering = shared ? threadsOf((role) => places[role] !== undefined) : ['process' as const];
  const outcomes = inGroup(granted, entering, replace, () => placeByRole(granted, places, replace));
  const resultOf = (role: ThreadRole, allKnown = false) => {
    if (!shared || places[role]) return toPinResult(outcomes[role], !allKnown);
    const tids = threadsOf((each) => each === role);
    const isOfRole = ({ tid }: { tid: number }) => tids.includes(tid);
    const { moved, unmovable } = shared;
    return { moved: moved.filter(isOfRole), unmovable: unmovable.filter(isOfRole), guaranteed: false };
  };
  return {
    main: resultOf('main', true),
    workers: resultOf('worker'),
    pool: resultOf('pool', complete),
    v8: resultOf('v8'),
    others: resultOf('other'),
    guaranteed: false,
  };
}

function threadsOf(isSelected: (role: ThreadRole) => boolean): number[] {
  return native.threads().flatMap(({ tid, role }) => (isSelected(role) ? tid : []));
}

// Comes first: if this fails, nothing is moved. Undefined if no threads go to the shared pool.
async function shareThreads(
  { grant, share }: GrantedThreads,
  places: Places,
  replace: boolean,
): Promise<PinResult | undefined> {
  if (!share || Object.values(places).every((place) => place !== undefined)) return undefined;
  if (!replace) native.checkNotPinned(toTid('process'), grant);
  return share(threadsOf((role) => places[role] === undefined));
}
