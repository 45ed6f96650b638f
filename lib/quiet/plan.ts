// QuietPlan: which kernel settings must change for the current quiet grants, and what goes on
// record. As pure as its inputs.
import type { QuietSetting } from '../account/assignments.js';
import { oncePerLast } from '../base/collections/once-per.js';
import type { Inheritance } from './kernel/setting.js';
import type { FoundSetting, Look, UnreadSetting } from './look.js';

/** A value to write. */
export interface Change extends FoundSetting {
  readonly target: string;
  /** The record after the change; undefined for a restoration. */
  readonly record: QuietSetting | undefined;
  /** The record before the change. */
  readonly before: QuietSetting | undefined;
}

export interface QuietPlan {
  /** Values to restore, in the order in which to write them. */
  readonly restorations: readonly Change[];
  readonly changes: readonly Change[];
  /**
   * Settings on record that are no longer requested, and that another program has changed. They
   * keep their values.
   */
  readonly foreign: readonly FoundSetting[];
  /** What is on record after all changes. */
  readonly settings: readonly QuietSetting[];
}

/** The key of a setting, found or on record. */
export const keyOf = (path: string, identity: string | null) => `${path} ${identity ?? ''}`;

/**
 * The values that new settings have started with since numalign wrote the one they inherit from.
 * There are hundreds of such settings.
 */
const valuesOf = oncePerLast(
  ({ written }: QuietSetting, { convert }: Inheritance): ReadonlySet<string> => new Set(written.map(convert)),
);

/** What must not be written. */
export interface Exclusions {
  /** True for paths to leave as they are. */
  readonly isGivenUp?: ((path: string) => boolean) | undefined;
  /** Whether this process may write a path that another process was not allowed to write. */
  readonly isWritable: (path: string) => boolean;
}

/** As pure as `exclusions`. */
export function planQuiet(
  { found, unread, hidden }: Look,
  recorded: readonly QuietSetting[],
  exclusions: Exclusions,
): QuietPlan {
  const recordsBefore = new Map(recorded.map((each) => [keyOf(each.path, each.identity), each]));
  const records = new Map<string, QuietSetting>();
  const steps = found.map((each) => {
    const step = stepOf(each, beforeOf(each, recordsBefore), exclusions);
    const value = step.restoration?.target ?? each.value;
    const record = step.record ?? bystanderOf({ ...each, value }, records, recordsBefore);
    if (record) records.set(keyOf(record.path, record.identity), record);
    return { ...step, record };
  });
  const foundKeys = new Set(found.map(({ setting: { path }, identity }) => keyOf(path, identity)));
  const isUnseen = isOneOf(unread, hidden);
  const leftRecords = recorded.filter(
    (each) => !foundKeys.has(keyOf(each.path, each.identity)) && isUnseen(each),
  );
  return {
    restorations: steps.flatMap(({ restoration }) => restoration ?? []).reverse(),
    changes: steps.flatMap(({ change }) => change ?? []),
    foreign: steps.flatMap(({ foreign }) => foreign ?? []),
    settings: [...steps.flatMap(({ record }) => record ?? []), ...leftRecords],
  };
}

function isOneOf(unread: readonly UnreadSetting[], hidden: readonly QuietSetting[]) {
  const settings = new Set(hidden);
  const paths = new Set(unread.map(({ setting }) => setting?.path));
  const parts = new Set(unread.filter(({ setting }) => !setting).map(({ part }) => part));
  return (each: QuietSetting) => settings.has(each) || paths.has(each.path) || parts.has(each.part);
}

// Refusals that depend on a process's rights to the file or its mount: another process may be
// allowed to write.
const LACKING_RIGHTS = new Set(['EACCES', 'EROFS']);

const lacksRights = ({ refusal }: QuietSetting) => refusal !== null && LACKING_RIGHTS.has(refusal);

interface Step {
  readonly restoration?: Change;
  readonly change?: Change;
  readonly foreign?: FoundSetting;
  readonly record?: QuietSetting;
}

/**
 * A setting's record before this plan. A setting that appeared later with a value of numalign
 * inherited that value; its original is then derived from the setting that it inherits from.
 */
function beforeOf(
  { part, setting: { path, inherits }, identity, value }: FoundSetting,
  recordsBefore: ReadonlyMap<string, QuietSetting>,
): QuietSetting | undefined {
  const before = recordsBefore.get(keyOf(path, identity));
  const from = before || !inherits ? undefined : recordsBefore.get(keyOf(inherits.path, null));
  if (!from || !valuesOf(from, inherits!).has(value)) return before;
  const original = inherits!.convert(from.original);
  return { part, path, identity, original, written: [value], refusal: null, isLeftover: false };
}

/**
 * The record for a setting that happens to have the value that new settings start with, or will
 * have it once restored. The record keeps it from being taken for a setting that appeared later.
 * `records`: includes what it may inherit from.
 */
function bystanderOf(
  { part, setting: { path, inherits }, identity, value }: FoundSetting,
  records: ReadonlyMap<string, QuietSetting>,
  recordsBefore: ReadonlyMap<string, QuietSetting>,
): QuietSetting | undefined {
  const from = inherits && records.get(keyOf(inherits.path, null));
  if (!from) return undefined;
  const before = recordsBefore.get(keyOf(path, identity));
  if (before?.original === value && before.written.length === 0) return before;
  if (!valuesOf(from, inherits).has(value)) return undefined;
  return { part, path, identity, original: value, written: [], refusal: null, isLeftover: false };
}

function stepOf(
  found: FoundSetting,
  before: QuietSetting | undefined,
  { isGivenUp, isWritable }: Exclusions,
): Step {
  const { part, setting, demand, identity, value } = found;
  const { path } = setting;
  // The write of a process that has ended in the meantime may still take effect.
  const isPending = setting.isDelayed === true && before?.refusal === null && value === before.original;
  const isOurs = before !== undefined && (before.written.includes(value) || isPending);
  // A value that another program has written is what must be restored in the end.
  const original = isOurs ? before!.original : value;
  const target = setting.target(original, demand);
  if (target === original) {
    if (!isOurs && before && before.written.length > 0 && value !== before.original)
      return { foreign: found };
    if (!isOurs || (value === original && !isPending)) return {};
    // Left to a process that may write it.
    if (lacksRights(before!) && !isWritable(path))
      return { record: before!.isLeftover ? before! : { ...before!, isLeftover: true } };
    return { restoration: { ...found, target, record: undefined, before } };
  }
  if (isOurs && setting.suffices?.(value, target, demand)) return { record: before };
  const isAsBefore = before?.written[0] === target && before.original === original;
  const isInForce = value === target;
  // Another program keeps changing it back, or the kernel has refused it.
  const isRefused = isAsBefore && before.refusal !== null && !(lacksRights(before) && isWritable(path));
  if (before && !isInForce && (isGivenUp?.(path) || isRefused)) return { record: before };
  const values = isOurs && !isInForce ? [target, value] : [target];
  const record: QuietSetting =
    isAsBefore && isInForce && before.refusal === null && before.written.length === 1
      ? before
      : { part, path, identity, original, written: values, refusal: null, isLeftover: false };
  return isInForce ? { record } : { record, change: { ...found, target, record, before } };
}
