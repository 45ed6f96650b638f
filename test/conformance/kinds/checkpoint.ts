// checkpoint: the kubelet's state files, read and written. Replayed through the package's parse and
// format functions.
import type { CpuManagerState, MemoryManagerState } from '../../../lib/entries/kubelet.js';
import {
  type Attempt,
  attempt,
  type Case,
  type Context,
  compareError,
  describeError,
  diverged,
  failed,
  type Kind,
  passed,
  type Result,
  versionOf,
} from '../case.js';

interface CheckpointCase extends Case {
  readonly kind: 'cpu' | 'memory';
  readonly variant: string;
  readonly policy: string;
  /** null: there is no file. */
  readonly text: string | null;
  readonly featureGates?: { readonly PodLevelResourceManagers: boolean };
  readonly runningContainers?: Readonly<Record<string, readonly [string, string]>>;
  readonly error?: string;
  /** What the kubelet has read. */
  readonly loaded?: object;
  /** What the kubelet has written. */
  readonly state?: object;
}

type State = CpuManagerState & MemoryManagerState & { readonly verified?: boolean };

/**
 * As plain text, so that a recorded and a read value can be compared: maps as objects, their
 * members in order.
 */
function plain(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'bigint') return Number(part);
    const entries =
      part instanceof Map ? [...part].map(([key, item]) => [String(key), item] as const) : undefined;
    if (!entries && (typeof part !== 'object' || part === null || Array.isArray(part))) return part;
    return Object.fromEntries(
      (entries ?? Object.entries(part as object)).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  });
}

/** As the file has it: what is empty is left out. */
function withoutEmpty({ podEntries, ...state }: any): object {
  const entries = Object.entries<any>(podEntries ?? {}).map(([uid, entry]) => [
    uid,
    Object.fromEntries(Object.entries(entry).filter(([, value]) => (value as string | []).length > 0)),
  ]);
  return entries.length === 0 ? state : { ...state, podEntries: Object.fromEntries(entries) };
}

/** What the recorded value tells, of ours. */
function loadedForm(recorded: object, state: State): string {
  const ours = JSON.parse(plain(state));
  return plain(withoutEmpty(Object.fromEntries(Object.keys(recorded).map((name) => [name, ours[name]]))));
}

const MEMBERS = ['policyname', 'defaultcpuset', 'machinestate', 'entries', 'podentries', 'checksum'];

/**
 * D10: a CPU file with checksum 0 or none. D13: one with an unknown member. F2: a memory file as of
 * 1.36, or one with podEntries, which are not lost.
 */
function letterOf(vector: CheckpointCase): string | undefined {
  const { kind, text } = vector;
  if (text === null) return undefined;
  const file = attempt(() => JSON.parse(text) as unknown);
  if ('error' in file) return undefined;
  const members = Object.entries(file.value ?? {});
  if (!members.every(([key]) => MEMBERS.includes(key.toLowerCase()))) return 'D13';
  if (kind === 'memory' && versionOf(vector) === 'v1.32') return undefined;
  const checksum = members.findLast(([key]) => key.toLowerCase() === 'checksum')?.[1] as unknown;
  if (checksum !== undefined && checksum !== 0) return undefined;
  return kind === 'memory' || members.some(([key]) => key.toLowerCase() === 'podentries') ? 'F2' : 'D10';
}

class Reader {
  readonly #vector: CheckpointCase;
  readonly #numalign: Context['numalign'];

  constructor(vector: CheckpointCase, { numalign }: Context) {
    this.#vector = vector;
    this.#numalign = numalign;
  }

  read(text: string | null, allowUnverified = false): Attempt<State> {
    const { kind, policy, runningContainers = {}, featureGates } = this.#vector;
    const podLevelResourceManagers = featureGates?.PodLevelResourceManagers === true;
    const format = { policy, allowUnverified, podLevelResourceManagers };
    const { parseCpuManagerState, parseMemoryManagerState } = this.#numalign;
    return attempt(() => {
      if (kind === 'memory') return parseMemoryManagerState(text, format) as State;
      return parseCpuManagerState(text, { ...format, runningContainers }) as State;
    });
  }

  write(state: State): string {
    const { formatCpuManagerState, formatMemoryManagerState } = this.#numalign;
    return this.#vector.kind === 'memory' ? formatMemoryManagerState(state) : formatCpuManagerState(state);
  }
}

/** D13: what is known of such a file is what is recorded. */
function compareKnown(
  { text, loaded }: CheckpointCase,
  refused: Attempt<State>,
  reader: Reader,
  context: Context,
) {
  const refusal = compareError('it has an unknown member', refused, context);
  if (refusal.outcome !== 'passed') return refusal;
  const known = Object.entries(JSON.parse(text!)).filter(([key]) => MEMBERS.includes(key.toLowerCase()));
  return compareRead(loaded!, reader.read(JSON.stringify(Object.fromEntries(known))));
}

function compareRead(value: object, answer: Attempt<State>): Result {
  const recorded = withoutEmpty(value);
  if ('error' in answer) return failed(plain(recorded), describeError(answer.error));
  const got = loadedForm(recorded, answer.value);
  return got === plain(recorded) ? passed : failed(plain(recorded), got);
}

function compareWritten(vector: CheckpointCase, reader: Reader): Result {
  const { text, state, variant } = vector;
  const answers = [reader.read(text), ...(variant === 'createdWhenAbsent' ? [reader.read(null)] : [])];
  for (const answer of answers) {
    const read = compareRead(state!, answer);
    if (read.outcome !== 'passed') return read;
    const written = reader.write((answer as { value: State }).value);
    if (written !== text) return failed(text!, written);
  }
  return passed;
}

/** A file without a checksum must be refused, and read only on request, as an unverified one. */
function compareUnverified(
  { text, loaded }: CheckpointCase,
  refused: Attempt<State>,
  reader: Reader,
  context: Context,
) {
  const refusal = compareError('it has no checksum', refused, context);
  if (refusal.outcome !== 'passed') return refusal;
  const answer = reader.read(text, true);
  return compareRead({ ...loaded, verified: false }, answer);
}

export const checkpoint: Kind = {
  name: 'checkpoint',

  matches({ kind, variant, policy, text }) {
    const isText = text === null || typeof text === 'string';
    return (
      (kind === 'cpu' || kind === 'memory') && [variant, policy].every((f) => typeof f === 'string') && isText
    );
  },

  run(theCase, context) {
    const vector = theCase as CheckpointCase;
    const reader = new Reader(vector, context);
    if (vector.state) return compareWritten(vector, reader);
    const answer = reader.read(vector.text);
    if (vector.error !== undefined) return compareError(vector.error, answer, context);
    if (!vector.loaded) return failed('a recorded answer', 'a case without one');
    const letter = letterOf(vector);
    if (!letter) return compareRead(vector.loaded, answer);
    const result =
      letter === 'D13'
        ? compareKnown(vector, answer, reader, context)
        : compareUnverified(vector, answer, reader, context);
    return result.outcome === 'passed' ? diverged(letter) : result;
  },
};
