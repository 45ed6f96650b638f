// scenario: a node driven through admissions, removals and restarts. Replayed through openManager on a state folder of its own.
// Not compared: messages; memory blocks and devices, which nothing here hands out yet; the checkpoint texts, since there is no exporter yet.
// The letters A5 and D1 are about memory and come with it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MachineJson, ManagerOptions } from '../../../lib/index.js';
import {
  type Case,
  type Context,
  describeError,
  diverged,
  failed,
  type Kind,
  passed,
  type Result,
  skipped,
} from '../case.js';
import { idsOf, listOf } from '../cpu-list.js';
import { type Answer, DrivenNode } from '../driven-node.js';
import { hasHalfCores, isIrregular } from '../machine.js';
import { flawOf, type Holdings, isSameHoldings, isSamePods, type Placement, type Rules } from '../placement.js';
import { type Claim, claimsOf, type RecordedPod } from '../pod.js';

interface RecordedResult {
  readonly admitted?: boolean;
  readonly reason?: string;
  readonly containers?: Holdings;
  readonly defaultCpuSet?: string;
  /** After a restart: upstream does not come back. */
  readonly error?: string;
  readonly hang?: boolean;
  readonly panic?: unknown;
}

interface Operation {
  readonly op: 'admit' | 'remove' | 'start' | 'restart' | 'readmit';
  readonly podUid?: string;
  readonly pod?: RecordedPod;
}

interface Step extends Operation {
  readonly result: RecordedResult;
}

interface Config {
  readonly cpuPolicy: 'none' | 'static';
  readonly cpuPolicyOptions: Readonly<Record<string, 'true' | 'false'>>;
  readonly reservedCpus: string | null;
  readonly reservedCpuMilli: number;
  readonly topologyPolicy: NonNullable<ManagerOptions['topologyManagerPolicy']>;
  readonly topologyPolicyOptions: NonNullable<ManagerOptions['topologyManagerPolicyOptions']>;
  readonly topologyScope: 'container' | 'pod';
  readonly memoryPolicy: 'None' | 'Static';
}

interface ScenarioCase extends Case {
  readonly machine: {
    readonly topology: string;
    readonly distances: readonly number[][] | null;
    readonly nodes: readonly {
      readonly id: number;
      readonly memory: number;
      readonly hugepages: readonly { readonly sizeKiB: number; readonly count: number }[];
    }[];
    readonly deviceResources: readonly unknown[];
  };
  readonly config: Config;
  readonly reservedCpusEffective?: string | null;
  readonly startError?: string;
  readonly steps: readonly Step[];
  readonly orderDependentStep?: Operation & { readonly outcomes: readonly RecordedResult[] };
}

/** The recorded machine with what the scenario says of its nodes. */
function machineOf({ machine }: ScenarioCase, recorded: MachineJson): MachineJson {
  const nodes = recorded.nodes.map((node, i) => {
    const { memory, hugepages } = machine.nodes[i]!;
    return { ...node, memory, hugepages: [...hugepages], distances: machine.distances?.[i] ?? null };
  });
  return { ...recorded, nodes };
}

function optionsOf({ config }: ScenarioCase): ManagerOptions {
  const { reservedCpus, reservedCpuMilli } = config;
  return {
    cpuManagerPolicy: config.cpuPolicy,
    cpuManagerPolicyOptions: config.cpuPolicyOptions,
    topologyManagerPolicy: config.topologyPolicy,
    topologyManagerPolicyOptions: config.topologyPolicyOptions,
    topologyManagerScope: config.topologyScope,
    ...(reservedCpus === null
      ? { systemReserved: { cpu: `${reservedCpuMilli}m` } }
      : { reservedSystemCPUs: reservedCpus }),
  };
}

/** What is compared of a step, by name. */
type Facts = Readonly<Record<string, unknown>>;

function factsOf({ admitted, reason, containers = {} }: RecordedResult, sharedPool: string): Facts {
  const facts: Record<string, unknown> = { admitted, reason };
  for (const [name, { cpus, hint }] of Object.entries(containers)) {
    facts[`${name}'s CPUs`] = cpus;
    facts[`${name}'s hint`] = [hint.nodes, hint.preferred];
  }
  return { ...facts, 'the shared pool': sharedPool };
}

interface Difference {
  readonly expected: string;
  readonly got: string;
}

function differenceOf(recorded: Facts, ours: Facts): Difference | undefined {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(ours)])];
  const different = names.filter((name) => JSON.stringify(recorded[name]) !== JSON.stringify(ours[name]));
  if (different.length === 0) return undefined;
  const show = (facts: Facts) => different.map((name) => `${name} ${JSON.stringify(facts[name])}`).join(', ');
  return { expected: show(recorded), got: show(ours) };
}

/** One replay. What is recorded is followed step by step, so that a diverged step can be answered for. */
class Replay {
  readonly #vector: ScenarioCase;
  readonly #machine: MachineJson;
  readonly #node: DrivenNode;
  readonly #allCpus: string;
  readonly #pods = new Map<string, RecordedPod>();
  readonly #claims = new Map<string, readonly Claim[]>();
  readonly #rules: Rules;
  /** What upstream has given to whom, and its shared pool. */
  #recorded = new Map<string, Holdings>();
  #recordedPool: string;

  constructor(vector: ScenarioCase, machine: MachineJson, node: DrivenNode) {
    const { config, reservedCpusEffective } = vector;
    this.#vector = vector;
    this.#machine = machine;
    this.#node = node;
    const online = machine.cpus.map((row) => row[machine.columns.indexOf('cpu')]!);
    this.#allCpus = listOf(online);
    this.#rules = {
      machine,
      reserved: idsOf(reservedCpusEffective ?? ''),
      isStrict: config.cpuPolicy === 'static' && config.cpuPolicyOptions['strict-cpu-reservation'] === 'true',
      claims: this.#claims,
      topologyPolicy: config.topologyPolicy,
    };
    this.#recordedPool = listOf(online.filter((cpu) => !(this.#rules.isStrict && this.#rules.reserved.has(cpu))));
  }

  async play(): Promise<Result> {
    const { steps, orderDependentStep } = this.#vector;
    let letter: string | undefined;
    for (const [i, step] of steps.entries()) {
      const { verdict, isOver } = await this.#judge(step, [step.result]);
      if (verdict.outcome === 'failed') return at(i, step, verdict);
      if (verdict.outcome === 'diverged') {
        letter ??= verdict.letter;
        if (isOver) return diverged(letter);
        await this.#loadRecorded();
      }
    }
    if (orderDependentStep) {
      const { verdict } = await this.#judge(orderDependentStep, orderDependentStep.outcomes);
      if (verdict.outcome === 'failed') return at(steps.length, orderDependentStep, verdict);
      if (verdict.outcome === 'diverged') letter ??= verdict.letter;
    }
    return letter === undefined ? passed : diverged(letter);
  }

  /** Does one operation and holds our answer against what is recorded, which may be one of several. `isOver`: nothing can follow. */
  async #judge(step: Operation, outcomes: readonly RecordedResult[]): Promise<{ verdict: Result; isOver: boolean }> {
    if (step.pod) {
      this.#pods.set(step.pod.uid, step.pod);
      this.#claims.set(step.pod.uid, claimsOf(step.pod, this.#vector.config.cpuPolicy));
    }
    const before = this.#node.observe();
    const answer = await this.#act(step);
    const after = this.#node.observe();
    const flaw = this.#flawOf(step, answer, before, after);
    if (flaw !== undefined) return { verdict: failed('an answer that keeps the rules', flaw), isOver: true };

    const differences = outcomes.map((outcome) => this.#compare(step, outcome, answer, after));
    const same = differences.indexOf(undefined);
    const recorded = outcomes[Math.max(same, 0)]!;
    const letter = this.#letterOf(step, recorded);
    this.#follow(step, recorded);
    if (same >= 0) return { verdict: passed, isOver: false };
    const { expected, got } = differences[0]!;
    if (letter === undefined) return { verdict: failed(expected, got), isOver: true };

    const halves = Object.values(answer?.containers ?? {}).find(({ cpus }) =>
      hasHalfCores(this.#machine, idsOf(cpus ?? '')),
    );
    if (letter === 'A4' && halves) return { verdict: failed('whole cores', `CPUs ${halves.cpus}`), isOver: true };

    await this.#node.restart();
    const reopened = this.#node.observe();
    if (!isSamePods(after.pods, reopened.pods) || after.sharedPool !== reopened.sharedPool) {
      return { verdict: failed('the same state after reopening', JSON.stringify([...reopened.pods])), isOver: true };
    }
    const isWrong = flawOf({ pods: this.#recorded, sharedPool: this.#recordedPool }, this.#rules) !== undefined;
    return { verdict: diverged(letter), isOver: isWrong || hasNoAnswer(recorded) };
  }

  async #act({ op, podUid = '' }: Operation): Promise<Answer | undefined> {
    if (op === 'admit' || op === 'readmit') return this.#node.admit(this.#pods.get(podUid)!);
    // A pod that was rejected has ended already.
    if (op === 'remove' && this.#recorded.has(podUid)) await this.#node.release(podUid);
    if (op === 'restart') await this.#node.restart();
    // Nothing to do for `start`: CPUs stay with the containers that have ended.
    return undefined;
  }

  /** Which rule our answer breaks, if any, whatever is recorded. */
  #flawOf(step: Operation, answer: Answer | undefined, before: Placement, after: Placement): string | undefined {
    const flaw = flawOf(after, this.#rules);
    if (flaw !== undefined) return flaw;
    const expected = new Map(before.pods);
    const uid = step.podUid ?? '';
    if (step.op === 'remove') expected.delete(uid);
    if (step.op === 'admit' && answer?.containers) expected.set(uid, answer.containers);
    // Also after `readmit`: what is placed stays placed.
    if (!isSamePods(expected, after.pods)) return `the state holds ${JSON.stringify([...after.pods])}`;
    if (step.op === 'readmit' && !(answer?.containers && isSameHoldings(answer.containers, before.pods.get(uid)))) {
      return `${uid}, which was placed, is answered ${JSON.stringify(answer)}`;
    }
    return undefined;
  }

  #compare(
    step: Operation,
    recorded: RecordedResult,
    answer: Answer | undefined,
    after: Placement,
  ): Difference | undefined {
    if (hasNoAnswer(recorded)) {
      return { expected: `no answer (upstream: ${JSON.stringify(recorded)})`, got: JSON.stringify(answer ?? 'one') };
    }
    const started = after.pods.get(step.podUid ?? '');
    const ours = answer ?? (step.op === 'start' && started ? { containers: started } : {});
    return differenceOf(factsOf(recorded, this.#poolOf(recorded)), factsOf(ours, after.sharedPool));
  }

  /** Without a policy upstream keeps no shared pool, and every CPU is shared. */
  #poolOf({ defaultCpuSet }: RecordedResult): string {
    return this.#vector.config.cpuPolicy === 'none' ? this.#allCpus : (defaultCpuSet ?? this.#recordedPool);
  }

  /** The letter under which another answer than the recorded one is numalign's intention, if any. Asked before the step is followed. */
  #letterOf({ op, podUid = '' }: Operation, recorded: RecordedResult): string | undefined {
    const { config, machine } = this.#vector;
    const isOn = (option: string) => config.cpuPolicyOptions[option] === 'true';
    if (op === 'readmit' && this.#recorded.has(podUid)) return 'B';
    if (recorded.hang) return 'A3';
    if (this.#poolOf(recorded) === '') return 'A6';
    const free = [...idsOf(this.#recordedPool)].filter((cpu) => !this.#rules.reserved.has(cpu));
    if (isOn('full-pcpus-only') && hasHalfCores(this.#machine, new Set(free))) return 'A4';
    if (isAliased(config, this.#machine)) return 'A2';
    if (isIrregular(this.#machine)) return 'A1';
    const isNumberedThrough = machine.nodes.every(({ id }, i) => id === i);
    const isClosest = String(config.topologyPolicyOptions['prefer-closest-numa-nodes']) === 'true';
    return recorded.panic !== undefined && isClosest && !isNumberedThrough ? 'C' : undefined;
  }

  /** Keeps account of what upstream did. */
  #follow({ op, podUid = '' }: Operation, recorded: RecordedResult): void {
    if (op === 'admit' || op === 'readmit' || op === 'remove') this.#recorded.delete(podUid);
    if (recorded.admitted && recorded.containers) {
      const holdings = Object.entries(recorded.containers).map(([name, { cpus, hint }]) => [name, { cpus, hint }]);
      this.#recorded.set(podUid, Object.fromEntries(holdings));
    }
    this.#recordedPool = this.#poolOf(recorded);
  }

  async #loadRecorded(): Promise<void> {
    const { topologyPolicy: policy, topologyScope: scope } = this.#vector.config;
    const pods = [...this.#recorded].map(([uid, holdings]) => {
      return { uid, holdings, claims: this.#claims.get(uid)!, policy, scope };
    });
    await this.#node.load(pods);
    const { pods: loaded, sharedPool } = this.#node.observe();
    if (!isSamePods(loaded, this.#recorded) || sharedPool !== this.#recordedPool) {
      throw new Error(`the recorded assignments were loaded as ${JSON.stringify([...loaded])}`);
    }
  }
}

/** A2: the remembered combination of nodes can be overwritten. */
function isAliased({ cpuPolicyOptions }: Config, machine: MachineJson): boolean {
  return cpuPolicyOptions['distribute-cpus-across-numa'] === 'true' && machine.numNumaNodes >= 5;
}

function hasNoAnswer({ error, hang, panic }: RecordedResult): boolean {
  return error !== undefined || hang === true || panic !== undefined;
}

/** Where in the scenario it failed. */
function at(i: number, { op, podUid }: Operation, { detail }: Extract<Result, { outcome: 'failed' }>): Result {
  const step = `step ${i} (${op}${podUid === undefined ? '' : ` ${podUid}`})`;
  return failed(`at ${step} ${detail.expected}`, detail.got);
}

/** The configuration must be refused, and as one that is wrong. */
async function startRefused(vector: ScenarioCase, options: ManagerOptions, { numalign }: Context): Promise<Result> {
  const expected = `a refusal to start (upstream: ${vector.startError})`;
  try {
    (await numalign.openManager(options)).close();
    return failed(expected, 'a manager');
  } catch (error) {
    const isRefusal = error instanceof numalign.NumalignError && error.code === 'ERR_INVALID_OPTION';
    return isRefusal ? passed : failed(expected, describeError(error));
  }
}

async function start(vector: ScenarioCase, folder: string, context: Context): Promise<Result> {
  const machine = machineOf(vector, (await context.machine(vector.machine.topology)).recorded);
  const topology = await context.numalign.discover({ json: machine });
  const options = { ...optionsOf(vector), topology, stateDir: join(folder, 'state') };
  if (vector.startError !== undefined) return startRefused(vector, options, context);

  let node = await DrivenNode.open(context.numalign, options);
  const { reservedCpusEffective = null, config } = vector;
  let letter: string | undefined;
  if (reservedCpusEffective !== null && node.reserved !== reservedCpusEffective) {
    letter = isAliased(config, machine) ? 'A2' : isIrregular(machine) ? 'A1' : undefined;
    const isValid = idsOf(node.reserved).size === idsOf(reservedCpusEffective).size && config.reservedCpus === null;
    if (!letter || !isValid) return failed(`the reserved CPUs ${reservedCpusEffective}`, node.reserved);
    const { systemReserved: _, ...others } = options;
    node.close();
    node = await DrivenNode.open(context.numalign, {
      ...others,
      reservedSystemCPUs: reservedCpusEffective,
      stateDir: join(folder, 'recorded'),
    });
  }
  const result = await new Replay(vector, machine, node).play();
  node.close();
  return letter !== undefined && result.outcome !== 'failed' ? diverged(letter) : result;
}

async function run(theCase: Case, context: Context): Promise<Result> {
  const vector = theCase as ScenarioCase;
  if (vector.config.memoryPolicy !== 'None' || vector.machine.deviceResources.length > 0) {
    return skipped('need the Memory Manager or devices');
  }
  const folder = mkdtempSync(join(tmpdir(), 'numalign-scenario-'));
  try {
    return await start(vector, folder, context);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const scenario: Kind = {
  name: 'scenario',

  matches({ machine, config, steps }) {
    return typeof machine === 'object' && typeof config === 'object' && Array.isArray(steps);
  },

  run,
};
