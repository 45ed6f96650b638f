// Look: the kernel settings that concern quiet grants, and their values now. Changes nothing.
import type { QuietSetting } from '../account/assignments.js';
import type { QuietPart } from '../account/pod-assignment.js';
import { errorName } from '../base/codes/errno.js';
import { nextTurn } from '../base/steps.js';
import type { Topology } from '../machine/topology.js';
import { cpusOfDemands, demandsFor, type QuietDemand } from './kernel/demands.js';
import type { KernelFiles } from './kernel/kernel-files.js';
import type { Part, PartDemand, Setting } from './kernel/setting.js';

/** A setting that exists now. */
export interface FoundSetting {
  readonly part: QuietPart;
  readonly setting: Setting;
  readonly demand: PartDemand;
  /** The setting's identity when the value was read. */
  readonly identity: string | null;
  readonly value: string;
}

/** A setting that cannot be read. It keeps its value and its record. */
export interface UnreadSetting {
  readonly part: QuietPart;
  /** Null for all settings of the part. */
  readonly setting: Setting | null;
  /** The kernel's error. */
  readonly reason: string;
}

/** What was found, without settings that no longer exist. */
export interface Look {
  readonly found: readonly FoundSetting[];
  readonly unread: readonly UnreadSetting[];
  /** Settings on record that cannot be seen from here. */
  readonly hidden: readonly QuietSetting[];
}

/** The settings of the machine, and what grants ask of them. */
export interface QuietFacts {
  readonly parts: readonly Part[];
  readonly files: KernelFiles;
  readonly topology: Topology;
  readonly demands: readonly QuietDemand[];
  readonly recorded: readonly QuietSetting[];
}

function partDemand({ topology, demands }: QuietFacts, part: QuietPart): PartDemand {
  const partDemands = demandsFor(demands, part);
  return { topology, demands: partDemands, cpus: cpusOfDemands(partDemands) };
}

const reasonOf = (error: unknown) => errorName(error as NodeJS.ErrnoException) ?? (error as Error).message;

// The settings of all parts that are requested or on record. Adds failures to `unread`.
function* settingsOf(
  facts: QuietFacts,
  unread: UnreadSetting[],
): Generator<Omit<FoundSetting, 'identity' | 'value'>> {
  const { parts, files, recorded } = facts;
  for (const part of parts) {
    const demand = partDemand(facts, part.name);
    const paths = recorded.filter((each) => each.part === part.name).map(({ path }) => path);
    if (demand.demands.length === 0 && paths.length === 0) continue;
    try {
      for (const setting of part.settings(files, demand, paths)) yield { part: part.name, setting, demand };
    } catch (error) {
      unread.push({ part: part.name, setting: null, reason: reasonOf(error) });
    }
  }
}

/** How many settings are read or written between two turns of the event loop, about 50 µs each. */
export const SETTINGS_AT_ONCE = 8;

const hiddenOf = ({ parts, files, recorded }: QuietFacts): QuietSetting[] =>
  parts.flatMap((part) =>
    part.hidden(
      files,
      recorded.filter((each) => each.part === part.name),
    ),
  );

/**
 * Yields to the event loop in between, since there may be hundreds of settings. Does not throw: an
 * unreadable file must not keep a grant from ending.
 */
export async function lookAtSettings(facts: QuietFacts): Promise<Look> {
  const [found, unread]: [FoundSetting[], UnreadSetting[]] = [[], []];
  let count = 0;
  for (const each of settingsOf(facts, unread)) {
    const { part, setting } = each;
    try {
      const value = await setting.read();
      if (value !== undefined) found.push({ ...each, identity: setting.identity, value });
    } catch (error) {
      unread.push({ part, setting, reason: reasonOf(error) });
    }
    if (++count % SETTINGS_AT_ONCE === 0) await nextTurn();
  }
  return { found, unread, hidden: hiddenOf(facts) };
}

/** `promised`: settings that can only be read asynchronously. */
export interface LookNow extends Omit<Look, 'hidden'> {
  readonly promised: readonly Setting[];
}

/** The same for settings that can be read synchronously. */
export function lookAtSettingsNow(facts: QuietFacts): LookNow {
  const [found, unread]: [FoundSetting[], UnreadSetting[]] = [[], []];
  const promised: Setting[] = [];
  for (const each of settingsOf(facts, unread)) {
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
