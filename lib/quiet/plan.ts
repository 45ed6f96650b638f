// QuietPlan: which settings of the kernel are to change for what quiet grants ask now, and what of
// them goes on record. It changes nothing.
import { setImmediate as turn } from 'node:timers/promises';
import type { QuietSetting } from '../account/quiet/quiet-record.js';
import type { QuietPart } from '../account/quiet/quiet-request.js';
import type { Topology } from '../machine/topology.js';
import type { QuietDemand } from './kernel/demands.js';
import { cpusOfDemands, demandsFor } from './kernel/demands.js';
import type { KernelFiles } from './kernel/kernel-files.js';
import type { Part, PartDemand, Setting } from './kernel/setting.js';

/** A setting that is there now. */
export interface FoundSetting {
  readonly part: QuietPart;
  readonly setting: Setting;
  readonly demand: PartDemand;
  /** As the setting had it with the value. */
  readonly identity: string | null;
  readonly value: string;
}

/** A setting that cannot be read: it stays as it is, on record too. */
export interface UnreadSetting {
  readonly part: QuietPart;
  /** null: all settings of the part. */
  readonly setting: Setting | null;
  /** The kernel's error. */
  readonly reason: string;
}

/** What there is, without settings that are gone. */
export interface Look {
  readonly found: readonly FoundSetting[];
  readonly unread: readonly UnreadSetting[];
  /** On record, and not to be seen from here. */
  readonly hidden: readonly QuietSetting[];
}

/** A value that is to be written. */
export interface Change extends FoundSetting {
  readonly target: string;
  /** As it stands on record once the change is made; undefined: it is restored. */
  readonly record: QuietSetting | undefined;
  /** As it stood on record before. */
  readonly before: QuietSetting | undefined;
}

export interface QuietPlan {
  /** To the values of before numalign, in the order in which they are to be written. */
  readonly restorations: readonly Change[];
  readonly changes: readonly Change[];
  /** What is on record once all is done. */
  readonly settings: readonly QuietSetting[];
}

/** Where settings are, and what is asked of them. */
export interface QuietGround {
  readonly parts: readonly Part[];
  readonly files: KernelFiles;
  readonly topology: Topology;
  readonly demands: readonly QuietDemand[];
  readonly recorded: readonly QuietSetting[];
}

export function partDemand({ topology, demands }: QuietGround, part: QuietPart): PartDemand {
  const its = demandsFor(demands, part);
  return { topology, demands: its, cpus: cpusOfDemands(its) };
}

const reasonOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? (error as Error).message;

// The settings of all parts that are asked for, or on record. `unread`: is added to.
function* settingsOf(
  ground: QuietGround,
  unread: UnreadSetting[],
): Generator<Omit<FoundSetting, 'identity' | 'value'>> {
  const { parts, files, recorded } = ground;
  for (const part of parts) {
    const demand = partDemand(ground, part.name);
    const paths = recorded.filter((each) => each.part === part.name).map(({ path }) => path);
    if (demand.demands.length === 0 && paths.length === 0) continue;
    try {
      for (const setting of part.settings(files, demand, paths)) yield { part: part.name, setting, demand };
    } catch (error) {
      unread.push({ part: part.name, setting: null, reason: reasonOf(error) });
    }
  }
}

/** Read or written between two turns of the event loop: some 50 µs each. */
export const SETTINGS_AT_ONCE = 8;

const hiddenOf = ({ parts, files, recorded }: QuietGround): QuietSetting[] =>
  parts.flatMap((part) => {
    const its = recorded.filter((each) => each.part === part.name);
    return its.length > 0 ? part.hidden(files, its) : [];
  });

/**
 * The event loop has its turn in between: there may be hundreds. Does not throw: a file that cannot be
 * read keeps no grant from its end.
 */
export async function lookAtSettings(ground: QuietGround): Promise<Look> {
  const [found, unread]: [FoundSetting[], UnreadSetting[]] = [[], []];
  let count = 0;
  for (const each of settingsOf(ground, unread)) {
    const { part, setting } = each;
    try {
      const value = await setting.read();
      if (value !== undefined) found.push({ ...each, identity: setting.identity, value });
    } catch (error) {
      unread.push({ part, setting, reason: reasonOf(error) });
    }
    if (++count % SETTINGS_AT_ONCE === 0) await turn();
  }
  return { found, unread, hidden: hiddenOf(ground) };
}

/** `promised`: settings that cannot be read at once. */
export interface LookNow extends Omit<Look, 'hidden'> {
  readonly promised: readonly Setting[];
}

/** The same of the settings that can be read at once. */
export function lookAtSettingsNow(ground: QuietGround): LookNow {
  const [found, unread]: [FoundSetting[], UnreadSetting[]] = [[], []];
  const promised: Setting[] = [];
  for (const each of settingsOf(ground, unread)) {
    const { part, setting } = each;
    try {
      const value = setting.read();
      if (typeof value === 'string') found.push({ ...each, identity: setting.identity, value });
      else if (value) {
        value.catch(() => {});
        promised.push(setting);
      }
    } catch (error) {
      unread.push({ part, setting, reason: reasonOf(error) });
    }
  }
  return { found, unread, promised };
}

/** Of a setting, found or on record. */
export const keyOf = (path: string, identity: string | null) => `${path} ${identity ?? ''}`;

/** What is not to be written. */
export interface Abstention {
  /** Of paths that are left as they are. */
  readonly isGivenUp?: ((path: string) => boolean) | undefined;
  /** Of paths whose write another process was refused for its rights: whether this one has them. */
  readonly isWritable: (path: string) => boolean;
}

/** Pure, as far as `abstention` is. */
export function planQuiet(
  { found, unread, hidden }: Look,
  recorded: readonly QuietSetting[],
  abstention: Abstention,
): QuietPlan {
  const known = new Map(recorded.map((each) => [keyOf(each.path, each.identity), each]));
  const steps = found.map((each) => stepOf(each, known, abstention));
  const seen = new Set(found.map(({ setting: { path }, identity }) => keyOf(path, identity)));
  const isUnseen = isOneOf(unread, hidden);
  const left = recorded.filter((each) => !seen.has(keyOf(each.path, each.identity)) && isUnseen(each));
  return {
    restorations: steps.flatMap(({ restoration }) => restoration ?? []).reverse(),
    changes: steps.flatMap(({ change }) => change ?? []),
    settings: [...steps.flatMap(({ record }) => record ?? []), ...left],
  };
}

function isOneOf(unread: readonly UnreadSetting[], hidden: readonly QuietSetting[]) {
  const settings = new Set(hidden);
  const paths = new Set(unread.map(({ setting }) => setting?.path));
  const parts = new Set(unread.filter(({ setting }) => !setting).map(({ part }) => part));
  return (each: QuietSetting) => settings.has(each) || paths.has(each.path) || parts.has(each.part);
}

// Of the rights of one process, on the file and on its mount: another may have them.
const OF_RIGHTS = new Set(['EACCES', 'EROFS']);

const isOfRights = ({ refusal }: QuietSetting) => refusal !== null && OF_RIGHTS.has(refusal);

interface Step {
  readonly restoration?: Change;
  readonly change?: Change;
  readonly record?: QuietSetting;
}

function stepOf(
  found: FoundSetting,
  known: ReadonlyMap<string, QuietSetting>,
  { isGivenUp, isWritable }: Abstention,
): Step {
  const { part, setting, demand, identity, value } = found;
  const { path } = setting;
  const before = known.get(keyOf(path, identity));
  // What a process wrote that has ended since may be still to come.
  const isToCome = setting.isDelayed === true && before?.refusal === null && value === before.original;
  const isOurs = before !== undefined && (before.written.includes(value) || isToCome);
  // A value that somebody else has written is what is given back in the end.
  const original = isOurs ? before!.original : value;
  const target = setting.target(original, demand);
  if (target === original) {
    if (!isOurs || (value === original && !isToCome)) return {};
    // Left to a process that may.
    if (isOfRights(before!) && !isWritable(path))
      return { record: before!.isLeftover ? before! : { ...before!, isLeftover: true } };
    return { restoration: { ...found, target, record: undefined, before } };
  }
  const isAsBefore = before?.written[0] === target && before.original === original;
  const isInForce = value === target;
  // Somebody else always changes it back, or the kernel has refused it.
  const isRefused = isAsBefore && before.refusal !== null && !(isOfRights(before) && isWritable(path));
  if (before && !isInForce && (isGivenUp?.(path) || isRefused)) return { record: before };
  const written = isOurs && !isInForce ? [target, value] : [target];
  const record: QuietSetting =
    isAsBefore && isInForce && before.refusal === null && before.written.length === 1
      ? before
      : { part, path, identity, original, written, refusal: null, isLeftover: false };
  return isInForce ? { record } : { record, change: { ...found, target, record, before } };
}
