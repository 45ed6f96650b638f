// The record of quiet settings. Pure.
import type { Assignments, QuietSetting } from '../account/assignments.js';
import type { Setting } from './kernel/setting.js';
import type { QuietPlan } from './plan.js';

/** Why a value could not be written, and the setting's value then. */
export interface WriteRefusal {
  /** The kernel's error, or what it made of the value. */
  readonly reason: string;
  readonly value: string | undefined;
}

export type WriteRefusals = ReadonlyMap<Setting, WriteRefusal>;

/** The record after a plan, with what the kernel has refused. */
export function settingsAfter(
  { settings, changes, restorations }: QuietPlan,
  refusals: WriteRefusals,
): QuietSetting[] {
  const replacements = new Map<QuietSetting, QuietSetting>();
  for (const { setting, record } of changes) {
    const refusal = refusals.get(setting);
    if (refusal) replacements.set(record!, withRefusal(record!, refusal));
  }
  const refusedRestorations = restorations.flatMap(({ setting, before }) => {
    const refusal = refusals.get(setting);
    return refusal ? [{ ...withRefusal(before!, refusal), isLeftover: true }] : [];
  });
  return [...settings.map((each) => replacements.get(each) ?? each), ...refusedRestorations];
}

// What the kernel has made of a value of numalign also belongs to numalign.
function withRefusal(record: QuietSetting, { reason, value }: WriteRefusal): QuietSetting {
  const isKnown = value === undefined || value === record.original || record.written.includes(value);
  return { ...record, refusal: reason, written: isKnown ? record.written : [...record.written, value] };
}

/** The record while a plan is carried out: what is about to be restored is still on record. */
export const settingsDuring = ({ settings, restorations }: QuietPlan): QuietSetting[] => [
  ...settings,
  ...restorations.map(({ before }) => before!),
];

/** The same state if the record stays the same. */
export function withSettings(state: Assignments, settings: readonly QuietSetting[]): Assignments {
  const { quiet } = state;
  const before = new Set(quiet?.settings);
  if (before.size === settings.length && settings.every((each) => before.has(each))) return state;
  const unknown = quiet?.unknown ?? {};
  const isEmpty = settings.length === 0 && Object.keys(unknown).length === 0;
  return { ...state, quiet: isEmpty ? null : { settings, unknown } };
}
