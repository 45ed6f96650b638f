// QuietPlan: which settings of the kernel are to change for what quiet grants ask now, and what of
// them goes on record. Pure, as far as what it is given is.
import type { QuietSetting } from '../account/quiet/quiet-record.js';
import type { Inheritance } from './kernel/setting.js';
import type { FoundSetting, Look, UnreadSetting } from './look.js';

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
  /** On record, asked for no more, and by now with the value of somebody else, which stays. */
  readonly foreign: readonly FoundSetting[];
  /** What is on record once all is done. */
  readonly settings: readonly QuietSetting[];
}

/** Of a setting, found or on record. */
export const keyOf = (path: string, identity: string | null) => `${path} ${identity ?? ''}`;

// By the record of what things inherit from, which never changes: there are hundreds of them.
const inheritances = new WeakMap<QuietSetting, ReadonlySet<string>>();

/** The values that things have begun with since numalign has written what they inherit from. */
function valuesOf(from: QuietSetting, { convert }: Inheritance): ReadonlySet<string> {
  let values = inheritances.get(from);
  if (!values) {
    values = new Set(from.written.map(convert));
    inheritances.set(from, values);
  }
  return values;
}

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
  const records = new Map<string, QuietSetting>();
  const steps = found.map((each) => {
    const step = stepOf(each, beforeOf(each, known), abstention);
    const value = step.restoration?.target ?? each.value;
    const record = step.record ?? bystanderOf({ ...each, value }, records, known);
    if (record) records.set(keyOf(record.path, record.identity), record);
    return { ...step, record };
  });
  const seen = new Set(found.map(({ setting: { path }, identity }) => keyOf(path, identity)));
  const isUnseen = isOneOf(unread, hidden);
  const left = recorded.filter((each) => !seen.has(keyOf(each.path, each.identity)) && isUnseen(each));
  return {
    restorations: steps.flatMap(({ restoration }) => restoration ?? []).reverse(),
    changes: steps.flatMap(({ change }) => change ?? []),
    foreign: steps.flatMap(({ foreign }) => foreign ?? []),
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
  readonly foreign?: FoundSetting;
  readonly record?: QuietSetting;
}

/**
 * A setting as it is on record. What has come since with a value of numalign's has it from the setting
 * that it inherits from, whose original would have been its own.
 */
function beforeOf(
  { part, setting: { path, inherits }, identity, value }: FoundSetting,
  known: ReadonlyMap<string, QuietSetting>,
): QuietSetting | undefined {
  const before = known.get(keyOf(path, identity));
  const from = before || !inherits ? undefined : known.get(keyOf(inherits.path, null));
  if (!from || !valuesOf(from, inherits!).has(value)) return before;
  const original = inherits!.convert(from.original);
  return { part, path, identity, original, written: [value], refusal: null, isLeftover: false };
}

/**
 * What has by chance the value that things begin with from now on, or will have it once it is
 * restored. It goes on record as it is, so that it is not taken for one that has come since.
 * `records`: of what it may inherit from, too.
 */
function bystanderOf(
  { part, setting: { path, inherits }, identity, value }: FoundSetting,
  records: ReadonlyMap<string, QuietSetting>,
  known: ReadonlyMap<string, QuietSetting>,
): QuietSetting | undefined {
  const from = inherits && records.get(keyOf(inherits.path, null));
  if (!from) return undefined;
  const before = known.get(keyOf(path, identity));
  if (before?.original === value && before.written.length === 0) return before;
  if (!valuesOf(from, inherits).has(value)) return undefined;
  return { part, path, identity, original: value, written: [], refusal: null, isLeftover: false };
}

function stepOf(
  found: FoundSetting,
  before: QuietSetting | undefined,
  { isGivenUp, isWritable }: Abstention,
): Step {
  const { part, setting, demand, identity, value } = found;
  const { path } = setting;
  // What a process wrote that has ended since may be still to come.
  const isToCome = setting.isDelayed === true && before?.refusal === null && value === before.original;
  const isOurs = before !== undefined && (before.written.includes(value) || isToCome);
  // A value that somebody else has written is what is given back in the end.
  const original = isOurs ? before!.original : value;
  const target = setting.target(original, demand);
  if (target === original) {
    if (!isOurs && before && before.written.length > 0 && value !== before.original)
      return { foreign: found };
    if (!isOurs || (value === original && !isToCome)) return {};
    // Left to a process that may.
    if (isOfRights(before!) && !isWritable(path))
      return { record: before!.isLeftover ? before! : { ...before!, isLeftover: true } };
    return { restoration: { ...found, target, record: undefined, before } };
  }
  if (isOurs && setting.suffices?.(value, target, demand)) return { record: before };
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
