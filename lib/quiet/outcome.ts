// QuietOutcome: how much of a grant's quiet is reached, and what stands in the way.
import { type Assignments, findPod, type QuietSetting } from '../account/assignments.js';
import { QUIET_PARTS, type QuietPart } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { demandsFor, partsOf } from './kernel/demands.js';
import type { Part, PartDemand } from './kernel/setting.js';
import { lookAtSettingsNow, type QuietFacts } from './look.js';
import { keyOf } from './plan.js';

/** How much of one part is reached. */
export interface PartOutcome {
  /** `yes`: everything of the part. `partly`: something of it is in force. `no`: nothing. */
  readonly reached: 'yes' | 'partly' | 'no';
  /** One sentence for each thing that stands in the way; empty if the part is reached. */
  readonly reasons: readonly string[];
}

/** The value of {@link Grant.quiet}. */
export interface QuietOutcome {
  /** What became of each part that the grant asks for. */
  readonly parts: Readonly<Partial<Record<QuietPart, PartOutcome>>>;
  /**
   * Other kernel work on the CPUs that only the kernel command line or a machine-wide setting can
   * change: one sentence each, which says what to set.
   */
  readonly unchanged: readonly string[];
}

const outcomeOf = (parts: QuietOutcome['parts'], unchanged: readonly string[]): QuietOutcome =>
  Object.freeze({ parts: Object.freeze(parts), unchanged: Object.freeze(unchanged) });

/** The outcome if nothing can be reached, for one reason. */
export function noOutcome(state: Assignments, uid: string, reason: string): QuietOutcome {
  const quiet = findPod(state, uid)?.quiet;
  const none: PartOutcome = Object.freeze({ reached: 'no', reasons: Object.freeze([reason]) });
  const parts = quiet ? partsOf(quiet, QUIET_PARTS) : [];
  return outcomeOf(Object.fromEntries(parts.map((part) => [part, none])), []);
}

/** The outcome for one grant. `unchangedOn` returns {@link QuietOutcome.unchanged} for its CPUs. */
export function quietOutcome(
  facts: QuietFacts,
  uid: string,
  unchangedOn: (cpus: CpuSet) => readonly string[],
): QuietOutcome {
  const demand = facts.demands.find((each) => each.uid === uid);
  if (!demand) return outcomeOf({}, []);
  const requestedParts = new Set(partsOf(demand.request, QUIET_PARTS));
  const entries = facts.parts
    .filter(({ name }) => requestedParts.has(name))
    .map((part) => [part.name, partOutcome(facts, part, uid)] as const);
  return outcomeOf(Object.fromEntries(entries), unchangedOn(demand.cpus));
}

function partOutcome(facts: QuietFacts, part: Part, uid: string): PartOutcome {
  const { files, topology, recorded } = facts;
  const demands = demandsFor(facts.demands, part.name).filter((each) => each.uid === uid);
  const grantDemand: PartDemand = { topology, demands, cpus: demands[0]!.cpus };
  const { found, unread, promised } = lookAtSettingsNow({ ...facts, parts: [part] });
  const records = new Map(recorded.map((each) => [keyOf(each.path, each.identity), each]));
  const disturbing = found.flatMap(({ setting, identity, value }) => {
    const cpus = setting.disturbs(value, grantDemand);
    if (cpus.isEmpty) return [];
    const record = records.get(keyOf(setting.path, identity));
    return [`${setting.title} is still on CPUs ${cpus}${whyNot(record, value)}`];
  });
  const refusals = promised.flatMap(({ path, identity, title }) => {
    const refusal = records.get(keyOf(path, identity))?.refusal ?? null;
    return refusal === null ? [] : [`${title} refuses the value that quiet needs ${refusalText(refusal)}`];
  });
  const unreadable = unread.map(
    ({ setting, reason }) => `${setting?.title ?? `the settings of ${part.name}`} cannot be read (${reason})`,
  );
  const reasons = [...disturbing, ...refusals, ...unreadable, ...part.obstacles(files, grantDemand)];
  if (reasons.length === 0) return Object.freeze({ reached: 'yes', reasons: Object.freeze([]) });
  const inForce = found.some(({ setting, identity, value }) => {
    const record = records.get(keyOf(setting.path, identity));
    return record?.written.includes(value) && setting.disturbs(value, grantDemand).isEmpty;
  });
  return Object.freeze({ reached: inForce ? 'partly' : 'no', reasons: Object.freeze(reasons) });
}

const ADVICE: Readonly<Record<string, string>> = {
  EACCES: '; acquire the grant as root',
  EROFS: '; in a container, have it mounted writable',
};

const refusalText = (refusal: string) => `(${refusal}${ADVICE[refusal] ?? ''})`;

function whyNot(record: QuietSetting | undefined, value: string): string {
  if (!record) return '';
  if (record.refusal !== null)
    return `: the kernel refuses ${record.written[0]} ${refusalText(record.refusal)}`;
  return record.written.includes(value) ? '' : `: another program has set it to ${value}`;
}

/** Why a grant does not have what it requires; undefined if it does. */
export function quietShortfall(
  { parts }: QuietOutcome,
  required: readonly QuietPart[],
): NumalignError | undefined {
  const missing = required.filter((part) => parts[part]?.reached !== 'yes');
  if (missing.length === 0) return undefined;
  const why = missing.flatMap((part) => parts[part]?.reasons.map((reason) => `${part}: ${reason}`) ?? [part]);
  return new NumalignError(
    'ERR_QUIET',
    `quiet ${missing.join(', ')} is required but not fully reached here: ${why.join('; ')}`,
    {
      value: missing,
      valid: Object.keys(parts).filter((part) => parts[part as QuietPart]!.reached === 'yes'),
      why,
    },
  );
}
