// scenario: a node driven through admissions, removals, starts and restarts. Replayed through
// openManager on a state folder of its own. Not compared: messages; which of equal devices a
// container has.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MachineJson } from '../../../lib/entries/topology.js';
import type { ManagerOptions, MemoryBlock } from '../../../lib/index.js';
import {
  type Case,
  type Context,
  describeError,
  diverged,
  failed,
  type Kind,
  passed,
  type Result,
  versionOf,
} from '../case.js';
import { idsOf, listOf } from '../cpu-list.js';
import { countByPlace, inventoryOf, placeOf, type RecordedResource, withDevices } from '../devices.js';
import { type Answer, DrivenNode } from '../driven-node.js';
import type { RecordedHint } from '../hint.js';
import { kubeletTake } from '../kubelet-take.js';
import { countL3Groups, groupsOf, hasHalfCores, hasSharedL3, isIrregular, wholeCoresOf } from '../machine.js';
import {
  type BytesByNode,
  bookedOf,
  capacitiesOf,
  column,
  groupsOfNodes,
  isNowhere,
  placesOf,
  type RecordedNumaNode,
  sorted,
  tablesOf,
} from '../memory.js';
import {
  type Booking,
  blocksIn,
  cpusLeftOf,
  flawOf,
  type Holding,
  type Holdings,
  isSameHoldings,
  isSamePlacement,
  isSamePods,
  type Placement,
  type Rules,
} from '../placement.js';
import {
  type Claim,
  claimsOf,
  levelOf,
  type Policies,
  type RecordedPod,
  type Whole,
  wholeOf,
} from '../pod.js';
import {
  blocksOf,
  follow,
  hasNoAnswer,
  hasOverlappingGroups,
  type Operation,
  type RecordedNode,
  type RecordedResult,
  recordedBlocks,
  type Step,
} from '../recorded-node.js';

interface Config extends Policies {
  readonly cpuPolicyOptions: Readonly<Record<string, 'true' | 'false'>>;
  readonly reservedCpus: string | null;
  readonly reservedCpuMilli: number;
  readonly topologyPolicy: NonNullable<ManagerOptions['policy']>;
  readonly topologyPolicyOptions: NonNullable<ManagerOptions['topologyManagerPolicyOptions']>;
  readonly topologyScope: 'container' | 'pod';
  readonly featureGates?: NonNullable<ManagerOptions['featureGates']>;
}

interface ScenarioCase extends Case {
  readonly machine: {
    readonly topology: string;
    readonly distances: readonly number[][] | null;
    readonly nodes: readonly RecordedNumaNode[];
    readonly deviceResources: readonly RecordedResource[];
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

function optionsOf({ id, config, machine }: ScenarioCase): ManagerOptions {
  const { reservedCpus, reservedCpuMilli } = config;
  return {
    kubeletVersion: versionOf({ id }),
    ...(config.featureGates && { featureGates: config.featureGates }),
    cpuManagerPolicy: config.cpuPolicy,
    cpuManagerPolicyOptions: config.cpuPolicyOptions,
    policy: config.topologyPolicy,
    topologyManagerPolicyOptions: config.topologyPolicyOptions,
    scope: config.topologyScope,
    memoryManagerPolicy: config.memoryPolicy,
    // The kubelet books the memory of nodes without CPUs like any other.
    memoryTiers: 'any',
    reservedMemory: machine.nodes.map(({ id, reserved }) => ({ numaNode: id, limits: reserved })),
    ...(reservedCpus === null
      ? { systemReserved: { cpu: `${reservedCpuMilli}m` } }
      : { reservedSystemCPUs: reservedCpus }),
  };
}

type CpuHoldings = ReadonlyMap<string, Pick<Holding, 'cpus' | 'hint'>>;

/** CPUs that are taken for containers, one after the other, of those that are free. */
interface Take {
  readonly claims: readonly Pick<Claim, 'name' | 'kind' | 'cpus'>[];
  readonly holdings: CpuHoldings;
  readonly free: readonly number[];
  /** These are a pod's, which is booked as a whole. */
  readonly isInPod?: boolean;
}

/** What is compared of a step, by name. */
type Facts = Readonly<Record<string, unknown>>;

/** A result, recorded or ours, in the same words. */
interface Outcome {
  readonly admitted: boolean | undefined;
  readonly reason: string | undefined;
  readonly containers: Readonly<
    Record<string, Omit<Holding, 'devices'> & { readonly devices: DeviceCounts }>
  >;
  /** Of the pod as a whole. */
  readonly booking: Booking | undefined;
  readonly sharedPool: string;
  readonly memoryFree: BytesByNode;
}

/** By resource, and by the NUMA nodes that the devices are near to. */
type DeviceCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

function recordedOutcome(result: RecordedResult, node: RecordedNode, uid: string): Outcome {
  const { admitted, reason, containers = {}, cpuIsolation } = result;
  const { sharedPool, memoryFree } = node;
  const booking = node.bookings.get(uid);
  const entries = Object.entries(containers).map(([name, holding]) => {
    const { cpus, hint, devices } = holding;
    const isolation = cpuIsolation?.[name] ?? (cpus === null ? 'host' : 'container');
    const counts = Object.entries(devices).map(([resource, { perNuma }]) => [resource, perNuma] as const);
    const given = { cpus, isolation, hint, memory: blocksOf(holding), devices: Object.fromEntries(counts) };
    return [name, given] as const;
  });
  return { admitted, reason, containers: Object.fromEntries(entries), booking, sharedPool, memoryFree };
}

function ourOutcome(
  { admitted, reason, containers = {} }: Answer,
  { bookings, sharedPool, memory }: Placement,
  uid: string,
): Outcome {
  const entries = Object.entries(containers).map(([name, holding]) => {
    const held = Object.entries(holding.devices).filter(([, list]) => list.length > 0);
    const counts = held.map(([resource, list]) => [resource, countByPlace(list)] as const);
    return [name, { ...holding, devices: Object.fromEntries(counts) }] as const;
  });
  return {
    admitted,
    reason,
    containers: Object.fromEntries(entries),
    booking: bookings.get(uid),
    sharedPool,
    memoryFree: column(memory, 'free'),
  };
}

/**
 * `isRandom`: upstream picks among the devices at random, so that only how many are near the hint's
 * nodes can be compared.
 */
function factsOf(
  { admitted, reason, containers, booking, sharedPool, memoryFree }: Outcome,
  isRandom: boolean,
): Facts {
  const facts: Record<string, unknown> = { admitted, reason };
  const blocks = (memory: readonly MemoryBlock[]) =>
    memory.map(({ nodes, type, bytes }) => `${type} on ${nodes}: ${bytes}`).sort();
  facts["the pod's CPUs"] = booking?.cpus;
  facts["the pod's memory"] = booking && blocks(booking.memory);
  for (const [name, { cpus, isolation, hint, memory, devices }] of Object.entries(containers)) {
    facts[`${name}'s CPUs`] = cpus;
    facts[`${name}'s isolation`] = isolation;
    facts[`${name}'s hint`] = [hint.nodes, hint.preferred];
    facts[`${name}'s memory`] = blocks(memory);
    const counts = Object.entries(devices).flatMap(([resource, places]) =>
      Object.entries(isRandom ? byNearness(places, hint) : places).map(
        ([place, count]) => `${count} ${resource} (${place})`,
      ),
    );
    facts[`${name}'s devices`] = counts.sort();
  }
  return { ...facts, 'the shared pool': sharedPool, 'the free memory': sorted(memoryFree) };
}

function byNearness(
  places: Readonly<Record<string, number>>,
  { nodes }: RecordedHint,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [place, count] of Object.entries(places)) {
    const isNear = nodes === null || place.split(',').some((node) => nodes.includes(Number(node)));
    const where = place === 'none' ? 'none' : isNear ? 'near' : 'far';
    counts[where] = (counts[where] ?? 0) + count;
  }
  return counts;
}

interface Difference {
  readonly expected: string;
  readonly got: string;
  /** The names of the facts that differ. */
  readonly facts: readonly string[];
}

function differenceOf(recorded: Facts, ours: Facts): Difference | undefined {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(ours)])];
  const different = names.filter((name) => JSON.stringify(recorded[name]) !== JSON.stringify(ours[name]));
  if (different.length === 0) return undefined;
  const show = (facts: Facts) => different.map((name) => `${name} ${JSON.stringify(facts[name])}`).join(', ');
  return { expected: show(recorded), got: show(ours), facts: different };
}

/**
 * One replay. What is recorded is followed step by step, so that a diverged step can be answered
 * for.
 */
class Replay {
  readonly #vector: ScenarioCase;
  readonly #machine: MachineJson;
  readonly #node: DrivenNode;
  readonly #pods = new Map<string, RecordedPod>();
  readonly #claims = new Map<string, readonly Claim[]>();
  readonly #wholes = new Map<string, Whole>();
  readonly #withoutDevices = new Set<string>();
  readonly #rules: Rules;
  /** The node as upstream has it. */
  #recorded: RecordedNode;
  /** After this many steps memory groups no longer overlap on it. */
  readonly #overlapsUntil: number;
  /** A pod was rejected for a later container than its first: upstream books and gives back. */
  #hasGivenBack = false;
  /** A pod that is booked as a whole was admitted again: upstream books another set of CPUs. */
  #hasReadmittedWhole = false;

  constructor(vector: ScenarioCase, machine: MachineJson, node: DrivenNode) {
    const { config, reservedCpusEffective, steps } = vector;
    this.#vector = vector;
    this.#machine = machine;
    this.#node = node;
    const { nodes, deviceResources } = vector.machine;
    this.#rules = {
      machine,
      reserved: idsOf(reservedCpusEffective ?? ''),
      isStrict: config.cpuPolicy === 'static' && config.cpuPolicyOptions['strict-cpu-reservation'] === 'true',
      claims: this.#claims,
      wholes: this.#wholes,
      withoutDevices: this.#withoutDevices,
      topologyPolicy: config.topologyPolicy,
      capacities: capacitiesOf(nodes),
      inventory: inventoryOf(deviceResources),
    };
    const online = machine.cpus.map((row) => row[machine.columns.indexOf('cpu')]!);
    const shared = online.filter((cpu) => !(this.#rules.isStrict && this.#rules.reserved.has(cpu)));
    const memoryFree = column(tablesOf(this.#rules.capacities, {}, []), 'free');
    this.#recorded = {
      ...{ pods: new Map(), bookings: new Map(), started: new Set() },
      ...{ sharedPool: listOf(shared), memoryFree },
    };
    let recorded = this.#recorded;
    const overlaps = steps.map((step) => {
      recorded = this.#after(recorded, step, step.result);
      return hasOverlappingGroups(recorded);
    });
    this.#overlapsUntil = overlaps.lastIndexOf(true) + 1;
  }

  async play(): Promise<Result> {
    const { steps, orderDependentStep } = this.#vector;
    let letter: string | undefined;
    for (const [i, step] of steps.entries()) {
      const { verdict, isOver } = await this.#judge(i, step, [step.result]);
      if (verdict.outcome === 'failed') return at(i, step, verdict);
      if (verdict.outcome === 'diverged') {
        letter ??= verdict.letter;
        if (isOver) return diverged(letter);
        await this.#loadRecorded();
      }
      const written = this.#compareCheckpoints(step.result);
      if (written.outcome === 'failed') return at(i, step, written);
      if (written.outcome === 'diverged') letter ??= written.letter;
    }
    if (orderDependentStep) {
      const { verdict } = await this.#judge(steps.length, orderDependentStep, orderDependentStep.outcomes);
      if (verdict.outcome === 'failed') return at(steps.length, orderDependentStep, verdict);
      if (verdict.outcome === 'diverged') letter ??= verdict.letter;
    }
    return letter === undefined ? passed : diverged(letter);
  }

  /** The node is as recorded: its state files must be too, where they are given. */
  #compareCheckpoints({ cpuCheckpoint, memoryCheckpoint }: RecordedResult): Result {
    const ours = this.#node.checkpoints();
    for (const [theirs, got] of [
      [cpuCheckpoint, ours.cpuCheckpoint],
      [memoryCheckpoint, ours.memoryCheckpoint],
    ] as const) {
      if (typeof theirs !== 'string' || theirs === got) continue;
      if (theirs === memoryCheckpoint && this.#node.isSameMemoryFile(theirs, got)) continue;
      return this.#isOfEmptyRequests(theirs, got) ? diverged('P2') : failed(`the state file ${theirs}`, got);
    }
    return passed;
  }

  /** P2: upstream writes down that containers that share have no memory. */
  #isOfEmptyRequests(theirs: string, ours: string): boolean {
    const isOfOne = (uid: string, name: string) => {
      const pod = this.#pods.get(uid);
      const claim = this.#claims.get(uid)?.find((each) => each.name === name);
      return (
        pod !== undefined && levelOf(pod, this.#vector.config) === 'containers' && claim?.isShared === true
      );
    };
    return this.#node.withoutEmpty(theirs, isOfOne) === ours;
  }

  /**
   * Does one operation and holds our answer against what is recorded, which may be one of several.
   * `isOver`: nothing can follow.
   */
  async #judge(
    i: number,
    step: Operation,
    results: readonly RecordedResult[],
  ): Promise<{ verdict: Result; isOver: boolean }> {
    if (step.pod) {
      this.#pods.set(step.pod.uid, step.pod);
      this.#claims.set(step.pod.uid, claimsOf(step.pod, this.#vector.config));
      const whole = wholeOf(step.pod, this.#vector.config);
      if (whole) this.#wholes.set(step.pod.uid, whole);
    }
    const before = this.#node.observe();
    const answer = await this.#act(step);
    const after = this.#node.observe();
    const flaw = this.#flawOf(step, answer, before, after);
    if (flaw !== undefined) return { verdict: failed('an answer that keeps the rules', flaw), isOver: true };

    const candidates = results.map((result) => {
      const recorded = this.#after(this.#recorded, step, result);
      const isRandom = i === this.#vector.steps.length;
      const difference = this.#compare(step, result, recorded, answer, after, isRandom);
      return { result, recorded, difference };
    });
    const same = candidates.find(({ difference }) => difference === undefined);
    const { result, recorded, difference } = same ?? candidates[0]!;
    if (result.admitted === false && (this.#claims.get(step.podUid ?? '')?.length ?? 0) > 1) {
      this.#hasGivenBack = true;
    }
    if (step.op === 'readmit' && this.#wholes.has(step.podUid ?? '')) this.#hasReadmittedWhole = true;
    const letter = difference && this.#letterOf(i, step, result, recorded, answer, after, difference);
    this.#recorded = recorded;
    if (difference === undefined) return { verdict: passed, isOver: false };
    if (letter === undefined) return { verdict: failed(difference.expected, difference.got), isOver: true };

    const halves = Object.values(answer?.containers ?? {}).find(({ cpus }) =>
      hasHalfCores(this.#machine, idsOf(cpus ?? '')),
    );
    // Pods that are there already have what upstream gave them.
    if (step.op === 'admit' && this.#isOn('full-pcpus-only') && halves) {
      return { verdict: failed('whole cores', `CPUs ${halves.cpus}`), isOver: true };
    }

    await this.#node.restart();
    const reopened = this.#node.observe();
    if (!isSamePlacement(after, reopened)) {
      return { verdict: failed('the same state after reopening', placementText(reopened)), isOver: true };
    }
    return {
      verdict: diverged(letter),
      isOver: hasNoAnswer(result) || this.#recordedPlacement() === undefined,
    };
  }

  async #act({ op, podUid = '' }: Operation): Promise<Answer | undefined> {
    if (op === 'admit' || op === 'readmit') return this.#node.admit(this.#pods.get(podUid)!);
    // A pod that was rejected has ended already.
    const isPlaced = this.#recorded.pods.has(podUid);
    if (op === 'start' && isPlaced) return this.#node.start(podUid, this.#containersOf(podUid));
    if (op === 'remove' && isPlaced) await this.#node.release(podUid);
    if (op === 'restart') await this.#node.restart();
    return undefined;
  }

  /** In order of admission. */
  #containersOf(podUid: string): string[] {
    return this.#claims.get(podUid)!.map(({ name }) => name);
  }

  /** Which rule our answer breaks, if any, whatever is recorded. */
  #flawOf(
    step: Operation,
    answer: Answer | undefined,
    before: Placement,
    after: Placement,
  ): string | undefined {
    const flaw = flawOf(after, this.#rules);
    if (flaw !== undefined) return flaw;
    const expected = new Map(before.pods);
    const uid = step.podUid ?? '';
    const held = before.pods.get(uid);
    if (step.op === 'remove') expected.delete(uid);
    if (step.op === 'admit' && answer?.containers) expected.set(uid, answer.containers);
    if (step.op === 'start' && held) expected.set(uid, onceStarted(held, this.#claims.get(uid)!));
    // Also after `readmit`: what is placed stays placed.
    if (!isSamePods(expected, after.pods)) return `the state holds ${placementText(after)}`;
    const isUnchanged = step.op === 'restart' || step.op === 'readmit' || answer?.admitted === false;
    if (isUnchanged && !isSamePlacement(before, after)) return `the state has become ${placementText(after)}`;
    const isAnswered = step.op === 'readmit' || (step.op === 'start' && held !== undefined);
    if (isAnswered && !(answer?.containers && isSameHoldings(answer.containers, after.pods.get(uid)))) {
      return `${uid}, which was placed, is answered ${JSON.stringify(answer)}`;
    }
    return undefined;
  }

  #compare(
    { podUid = '' }: Operation,
    result: RecordedResult,
    recorded: RecordedNode,
    answer: Answer | undefined,
    after: Placement,
    isRandom: boolean,
  ): Difference | undefined {
    if (hasNoAnswer(result)) {
      const got = JSON.stringify(answer ?? 'one');
      return { expected: `no answer (upstream: ${JSON.stringify(result)})`, got, facts: ['the answer'] };
    }
    const theirs = recordedOutcome(result, recorded, podUid);
    const ours = ourOutcome(answer ?? {}, after, podUid);
    return differenceOf(factsOf(theirs, isRandom), factsOf(ours, isRandom));
  }

  /**
   * The node after a step. Without a policy upstream keeps no shared pool, and every CPU is shared.
   */
  #after(recorded: RecordedNode, step: Operation, result: RecordedResult): RecordedNode {
    const isKept = this.#vector.config.cpuPolicy === 'static';
    return follow(recorded, step, isKept ? result : { ...result, defaultCpuSet: recorded.sharedPool });
  }

  #isOn(option: string): boolean {
    return this.#vector.config.cpuPolicyOptions[option] === 'true';
  }

  /**
   * The letter under which another answer than the recorded one is numalign's intention, if any.
   * `recorded`: after the step.
   */
  #letterOf(
    i: number,
    { op, podUid = '' }: Operation,
    result: RecordedResult,
    recorded: RecordedNode,
    answer: Answer | undefined,
    after: Placement,
    difference: Difference,
  ): string | undefined {
    const { machine, config } = this.#vector;
    const isWhole = this.#wholes.has(podUid);
    if (op === 'readmit' && this.#recorded.pods.has(podUid)) return isWhole ? 'P1' : 'B';
    if (op === 'restart' && this.#hasReadmittedWhole && BROKEN_CPUS.test(result.error ?? '')) return 'P1';
    if (result.hang) return 'A3';
    const letter = this.#letterOfWhole(op, podUid, result, answer, difference);
    if (letter !== undefined) return letter;
    if (this.#isRandomChoice(result, answer, difference)) return 'F3';
    const only = difference.facts.join();
    const isAligned = config.topologyPolicy === 'restricted' || config.topologyPolicy === 'single-numa-node';
    const isSooner = answer?.reason === 'TopologyAffinityError' && difference.facts.includes('reason');
    const isGivenBack = this.#hasGivenBack && isSameInGroups(recorded, after);
    const isOtherwiseSame = only === 'reason' || (only === 'reason,the free memory' && isGivenBack);
    if (isAligned && isSooner && isOtherwiseSame && this.#isMemoryNowhere(podUid, result)) return 'D1';
    if (only === 'the free memory' && isGivenBack) return 'D9';
    const isNumberedThrough = machine.nodes.every(({ id }, at) => id === at);
    const isClosest = String(config.topologyPolicyOptions['prefer-closest-numa-nodes']) === 'true';
    const isC = (isClosest && !isNumberedThrough) || lacksHugepageSize(machine.nodes);
    if (result.panic !== undefined && isC) return 'C';
    if (recorded.sharedPool === '') return 'A6';
    // Under these, the group is extended for the pod, and not for its first container.
    const isOfPod = config.topologyPolicy === 'best-effort' && config.topologyScope === 'pod';
    const isHereOnly = result.admitted === false && answer?.admitted === true;
    if (hasOverlappingGroups(recorded)) return 'A5';
    if (isOfPod && isHereOnly && NO_GROUP.test(result.message ?? '')) return 'A5';
    const areBothRejected = !result.admitted && answer?.admitted === false && only === 'reason';
    if (areBothRejected && this.#isOn('full-pcpus-only') && isIrregular(this.#machine)) return 'G1';
    if (op === 'restart' && this.#hasGivenBack && BROKEN_MEMORY.test(result.error ?? '')) return 'A5';
    if (difference.facts.some(isOfCpus)) {
      const letter = this.#letterOfCpus(podUid, result, answer, after);
      if (letter !== undefined) return letter;
    }
    return i < this.#overlapsUntil ? 'A5' : undefined;
  }

  /** The letter of pods with resources as a whole under which another answer is intended, if any. */
  #letterOfWhole(
    op: Operation['op'],
    podUid: string,
    result: RecordedResult,
    answer: Answer | undefined,
    { facts }: Difference,
  ): string | undefined {
    const pod = this.#pods.get(podUid);
    const level = pod && levelOf(pod, this.#vector.config);
    const claims = this.#claims.get(podUid) ?? [];
    if (level === 'containers' && op === 'admit') {
      const isShared = claims.some((claim) => claim.isShared);
      if (!isShared || result.admitted || !NO_MEMORY.test(result.message ?? '')) return undefined;
      if (!answer?.admitted && facts.join() !== 'reason') return undefined;
      const free = [...idsOf(this.#recorded.sharedPool)].filter((cpu) => !this.#rules.reserved.has(cpu));
      const ours = new Map(Object.entries(answer?.containers ?? {}));
      return this.#areTaken({ claims, holdings: ours, free }, 'own') ? 'P2' : undefined;
    }
    if (level !== 'pod') return undefined;
    const isSmt = op === 'admit' && result.admitted === true && answer?.reason === 'SMTAlignmentError';
    if (isSmt && this.#isOn('full-pcpus-only') && claims.some((claim) => this.#isOfHalves(claim)))
      return 'P3';
    if (claims.some(({ requests }) => this.#asksForDevices(requests))) {
      if (this.#arePromised(op, claims, result, facts) || result.deviceErrors) return 'P4';
      const isMissed = result.admitted === true && answer?.reason === 'UnexpectedAdmissionError';
      if (op === 'admit' && isMissed && this.#lacksDevices(claims)) return 'P4';
    }
    return undefined;
  }

  /**
   * F3: of devices near the hint's nodes upstream picks at random unless their plugin chooses, of
   * whatever other nodes they are near too. Ours are as many near ones.
   */
  #isRandomChoice(
    { containers = {} }: RecordedResult,
    answer: Answer | undefined,
    { facts }: Difference,
  ): boolean {
    if (!facts.every((fact) => fact.endsWith("'s devices"))) return false;
    const isRegistered = (resource: string) => this.#rules.inventory.has(resource);
    const ours = answer?.containers ?? {};
    if (![...this.#rules.inventory.keys()].every((resource) => isReusedAlike(resource, containers, ours)))
      return false;
    return Object.entries(containers).every(
      ([name, { devices, hint }]) =>
        Object.keys(devices).every(isRegistered) &&
        [...this.#rules.inventory.keys()].every((resource) => {
          const { ids, perNuma = {} } = devices[resource] ?? {};
          const counts = countByPlace(ours[name]?.devices[resource] ?? []);
          // Ids are recorded also where the same happened to be picked in each run.
          if (ids !== null && this.#isChosenByPlugin(resource))
            return JSON.stringify(sorted({ 0: perNuma })) === JSON.stringify(sorted({ 0: counts }));
          const near = (places: typeof counts) =>
            JSON.stringify(Object.entries(byNearness(places, hint)).sort());
          return this.#areThere(resource, perNuma) && near(perNuma) === near(counts);
        }),
    );
  }

  #isChosenByPlugin(resource: string): boolean {
    const { deviceResources } = this.#vector.machine;
    return deviceResources.some(({ name, preferredAllocation }) => name === resource && preferredAllocation);
  }

  #areThere(resource: string, perNuma: Readonly<Record<string, number>>): boolean {
    const places = [...(this.#rules.inventory.get(resource)?.values() ?? [])].map(placeOf);
    return Object.entries(perNuma).every(
      ([place, count]) => places.filter((each) => each === place).length >= count,
    );
  }

  /** P4: none at admission, and what a container asks for when it starts. */
  #arePromised(
    op: Operation['op'],
    claims: readonly Claim[],
    { containers = {} }: RecordedResult,
    facts: readonly string[],
  ): boolean {
    const own = /^(.*)'s devices$/;
    return facts.every((fact) => {
      const name = own.exec(fact)?.[1];
      const requests = claims.find((claim) => claim.name === name)?.requests;
      const devices = Object.entries(containers[name ?? '']?.devices ?? {});
      if (!requests || op === 'admit') return requests !== undefined && devices.length === 0;
      return devices.every(([resource, { perNuma = {} }]) => {
        const count = Object.values(perNuma).reduce((sum, each) => sum + each, 0);
        return count === requests[resource] && this.#areThere(resource, perNuma);
      });
    });
  }

  /** P3: this many CPUs cannot be whole cores. */
  #isOfHalves({ cpus }: Claim): boolean {
    const { numCpus, numCores } = this.#machine;
    return cpus % Math.floor(numCpus / numCores) !== 0 || isIrregular(this.#machine);
  }

  #asksForDevices(requests: Claim['requests']): boolean {
    return [...this.#rules.inventory.keys()].some((resource) => (requests[resource] ?? 0) > 0);
  }

  /** P4: the existing pods have been promised devices, and too few are left. */
  #lacksDevices(claims: readonly Claim[]): boolean {
    return [...this.#rules.inventory].some(([resource, devices]) => {
      const held = new Set<string>();
      let unknown = 0;
      for (const holdings of this.#recorded.pods.values()) {
        for (const { devices: own } of Object.values(holdings)) {
          const { ids, perNuma = {} } = own[resource] ?? {};
          for (const id of ids ?? []) held.add(id);
          if (!ids) unknown += Object.values(perNuma).reduce((sum, count) => sum + count, 0);
        }
      }
      return podTotalOf(claims, resource) > devices.size - held.size - unknown;
    });
  }

  /** The letter under which other CPUs, hints, shared pool or admission are intended, if any. */
  #letterOfCpus(
    podUid: string,
    result: RecordedResult,
    answer: Answer | undefined,
    after: Placement,
  ): string | undefined {
    const { config } = this.#vector;
    const free = [...idsOf(this.#recorded.sharedPool)].filter((cpu) => !this.#rules.reserved.has(cpu));
    const [theirs, ours] = [recordedCpus(result), Object.entries(answer?.containers ?? {})];
    const [theirSet, ourSet] = [result.podCpus ?? undefined, after.bookings.get(podUid)?.cpus];
    const theirTakes = this.#takesOf(podUid, theirs, theirSet, free);
    const ourTakes = this.#takesOf(podUid, new Map(ours), ourSet, free);
    if (this.#isOfSparedCore(theirTakes, ourTakes)) return 'F1';
    const isOfHalves =
      this.#isOn('full-pcpus-only') &&
      theirTakes.some((take) => hasHalfCores(this.#machine, new Set(take.free)));
    if (!isOfHalves && isAliased(config, this.#machine)) return 'A2';
    if (!isOfHalves && !isIrregular(this.#machine)) return undefined;
    if (!theirTakes.every((take) => this.#areTaken(take, 'average'))) return undefined;
    if (!ourTakes.every((take) => this.#areTaken(take, 'own'))) return undefined;
    // What a strict policy promises holds whatever the letter.
    const leavesHint = ({ cpus, hint }: Pick<Holding, 'cpus' | 'hint'>) => {
      const own = idsOf(cpus ?? '');
      return hint.nodes !== null && this.#near(hint, own).size < own.size;
    };
    const isStrict = config.topologyPolicy === 'restricted' || config.topologyPolicy === 'single-numa-node';
    if (isStrict && ours.some(([, holding]) => leavesHint(holding))) return undefined;
    // Nothing is compared with CPUs that were not free.
    const isFree = [...theirs.values()].every(({ cpus }) =>
      [...idsOf(cpus ?? '')].every((cpu) => free.includes(cpu)),
    );
    if (this.#isOn('prefer-align-cpus-by-uncorecache') && !isOfHalves && isFree) {
      const groups = (list: string) => countL3Groups(this.#machine, idsOf(list));
      const isWider = (own?: string | null, recorded?: string | null) =>
        own && recorded && groups(own) > groups(recorded);
      const isAnyWider = ours.some(([name, { cpus }]) => isWider(cpus, theirs.get(name)?.cpus));
      if (isAnyWider || isWider(ourSet, theirSet)) return undefined;
    }
    return isOfHalves ? 'A4' : 'A1';
  }

  /** What is taken for a pod; of one that is booked as a whole its set, and then its containers' of this. */
  #takesOf(
    podUid: string,
    holdings: CpuHoldings,
    podSet: string | undefined,
    free: readonly number[],
  ): readonly Take[] {
    const claims = this.#claims.get(podUid) ?? [];
    const [whole, first] = [this.#wholes.get(podUid), [...holdings.values()][0]];
    if (!whole || !podSet || !first) return [{ claims, holdings, free }];
    const pod = { name: podUid, kind: 'app', cpus: whole.cpus } as const;
    const booked = new Map([[podUid, { cpus: podSet, hint: first.hint }]]);
    return [
      { claims: [pod], holdings: booked, free },
      { claims, holdings, free: [...idsOf(podSet)], isInPod: true },
    ];
  }

  /**
   * Whether CPUs are what is taken near the hints of the containers, one after the other: single CPUs
   * by averages upstream, here by the own sizes of elements, and whole cores where only these are
   * handed out. True also where no short rule says what is taken.
   */
  #areTaken(take: Take, sizes: 'average' | 'own'): boolean {
    if (!isRestShared(take)) return false;
    const isFull = this.#isOn('full-pcpus-only');
    const isLong =
      this.#isOn('distribute-cpus-across-numa') ||
      this.#isOn('prefer-align-cpus-by-uncorecache') ||
      (isFull && isIrregular(this.#machine)) ||
      take.claims.some(({ kind }) => kind === 'init');
    if (isLong) return true;
    const strategy = this.#isOn('distribute-cpus-across-cores') ? 'spread' : 'packed';
    const isOnlyWhole = isFull && sizes === 'own';
    return this.#isTakenNear(take, { strategy, sizes }, isOnlyWhole);
  }

  // Later containers reuse CPUs of init containers. Within a pod's set the hint no longer counts.
  #isTakenNear(
    { claims, holdings, free, isInPod = false }: Take,
    options: Parameters<typeof kubeletTake>[3],
    isOnlyWhole: boolean,
  ): boolean {
    let [left, reusable] = [new Set(free), new Set<number>()];
    return claims.every(({ name, kind, cpus: count }) => {
      const holding = holdings.get(name);
      if (!holding || count === 0) return true;
      const all = new Set([...left, ...reusable]);
      const usable = isOnlyWhole ? wholeCoresOf(this.#machine, all) : all;
      const near = isInPod ? usable : this.#near(holding.hint, usable);
      const first = kubeletTake(this.#machine, near, Math.min(near.size, count), options);
      const others = new Set([...usable].filter((cpu) => !first.has(cpu)));
      const rest = kubeletTake(this.#machine, others, count - first.size, options);
      const taken = new Set([...first, ...rest]);
      left = new Set([...left].filter((cpu) => !taken.has(cpu)));
      reusable =
        kind === 'init'
          ? new Set([...reusable, ...taken])
          : new Set([...reusable].filter((cpu) => !taken.has(cpu)));
      return holding.cpus === listOf(taken);
    });
  }

  /**
   * F1: as of 1.34 upstream splits a core that is wholly free for a single CPU though another is used
   * in part already: what is recorded is its rule, and ours the same with that core instead.
   */
  #isOfSparedCore(theirs: readonly Take[], ours: readonly Take[]): boolean {
    const version = versionOf(this.#vector);
    const isAligned = this.#isOn('prefer-align-cpus-by-uncorecache');
    if (version === 'v1.32' || !isAligned || this.#isOn('distribute-cpus-across-numa')) return false;
    const areTaken = (takes: readonly Take[], sparesCores: boolean) => {
      const options = { preferAlignByUncoreCache: true, version, sparesCores };
      return takes.every((take) => isRestShared(take) && this.#isTakenNear(take, options, false));
    };
    const [{ holdings }, { holdings: own }] = [theirs.at(-1)!, ours.at(-1)!];
    const isHint = ([name, { hint }]: readonly [string, Pick<Holding, 'hint'>]) =>
      JSON.stringify(hint) === JSON.stringify(own.get(name)?.hint);
    return (
      holdings.size > 0 && [...holdings].every(isHint) && areTaken(theirs, false) && areTaken(ours, true)
    );
  }

  #near({ nodes }: RecordedHint, cpus: ReadonlySet<number>): Set<number> {
    const inNodes = groupsOf(this.#machine, 'numa');
    const own = (nodes ?? []).flatMap((node) => inNodes.get(node) ?? []);
    const sockets = [...groupsOf(this.#machine, 'socket').values()];
    const around = this.#isOn('align-by-socket')
      ? sockets.filter((socket) => socket.some((cpu) => own.includes(cpu))).flat()
      : own;
    return new Set(around.filter((cpu) => cpus.has(cpu)));
  }

  /**
   * D1: no NUMA nodes have the memory. Upstream notices when it allocates, unless something else is
   * missing too.
   */
  #isMemoryNowhere(podUid: string, { reason, message = '' }: RecordedResult): boolean {
    if (reason === 'UnexpectedAdmissionError' && NO_MEMORY.test(message)) return true;
    const isOther =
      (reason === 'UnexpectedAdmissionError' && NO_DEVICES.test(message)) || reason === 'SMTAlignmentError';
    if (!isOther || NO_MEMORY.test(message)) return false;
    const { topologyScope, topologyPolicy } = this.#vector.config;
    const claims = this.#claims.get(podUid) ?? [];
    const groups = groupsOfNodes(recordedBlocks(this.#recorded)) ?? new Map<number, readonly number[]>();
    const wanted = topologyScope === 'pod' ? [this.#wholes.get(podUid) ?? podMemoryOf(claims)] : claims;
    const isOnOneNode = topologyPolicy === 'single-numa-node';
    return isNowhere(wanted, placesOf(this.#recorded.memoryFree, groups), isOnOneNode);
  }

  /** The recorded node as a placement, as long as it keeps the rules. */
  #recordedPlacement(): Placement | undefined {
    const { pods: recorded, bookings, sharedPool, memoryFree } = this.#recorded;
    for (const [uid, holdings] of recorded) {
      const lacksSome = (this.#claims.get(uid) ?? []).some(({ name, requests }) =>
        [...this.#rules.inventory.keys()].some(
          (resource) => (requests[resource] ?? 0) > 0 && !holdings[name]?.devices[resource],
        ),
      );
      const pod = this.#pods.get(uid);
      if (lacksSome && pod && levelOf(pod, this.#vector.config) === 'pod') this.#withoutDevices.add(uid);
      else this.#withoutDevices.delete(uid);
    }
    const pods = withDevices(recorded, this.#claims, this.#rules.inventory);
    if (!pods) return undefined;
    const memory = tablesOf(this.#rules.capacities, memoryFree, blocksIn({ pods, bookings }));
    const placement = { pods, bookings, sharedPool, memory };
    return flawOf(placement, this.#rules) === undefined ? placement : undefined;
  }

  /** REQUIRES: what is recorded keeps the rules. */
  async #loadRecorded(): Promise<void> {
    const { topologyPolicy: policy, topologyScope: scope } = this.#vector.config;
    const placement = this.#recordedPlacement()!;
    const pods = [...placement.pods].map(([uid, holdings]) => {
      const isStarted = this.#recorded.started.has(uid);
      const booking = placement.bookings.get(uid);
      const { podResources } = this.#pods.get(uid)!;
      return {
        uid,
        holdings,
        booking,
        podResources,
        claims: this.#claims.get(uid)!,
        isStarted,
        policy,
        scope,
      };
    });
    await this.#node.load(pods, bookedOf(placement.memory));
    const loaded = this.#node.observe();
    if (!isSamePlacement(loaded, placement)) {
      throw new Error(`the recorded assignments were loaded as ${placementText(loaded)}`);
    }
  }
}

/**
 * D1: that no NUMA nodes have the memory, or only such whose groups cannot be had, upstream finds
 * out when it allocates.
 */
const NO_MEMORY = /^Allocate failed due to \[memorymanager\] /;
const NO_DEVICES = /^Allocate failed due to requested number of devices unavailable /;

/** A5: why upstream does not start again. */
const BROKEN_MEMORY = /memory ?manager|machine state/i;

/** A5: the first container of a pod was booked on a node that cannot be extended for the next. */
const NO_GROUP = /failed to find NUMA nodes to extend/;

/** P1: the CPUs that were booked before have no owner. */
const BROKEN_CPUS = /doesn't match with CPUs in state/;

/** Containers that share within their pod have what its exclusive ones leave. */
function isRestShared({ claims, holdings, free, isInPod = false }: Take): boolean {
  const cpusOf = (name: string) => holdings.get(name)?.cpus;
  const sharing = isInPod ? claims.filter(({ cpus }) => cpus === 0) : [];
  return sharing.every(
    (claim) => cpusOf(claim.name) === listOf(cpusLeftOf(new Set(free), claims, claim, cpusOf)),
  );
}

/** F3: where the recorded devices are known, ours are as many different ones in all containers together. */
function isReusedAlike(
  resource: string,
  recorded: NonNullable<RecordedResult['containers']>,
  ours: Holdings,
): boolean {
  const theirIds = Object.values(recorded).map(({ devices }) => devices[resource]?.ids);
  if (theirIds.includes(null)) return true;
  const ourIds = Object.values(ours).flatMap(({ devices }) => (devices[resource] ?? []).map(({ id }) => id));
  return new Set(ourIds).size === new Set(theirIds.flatMap((ids) => ids ?? [])).size;
}

/** What a pod needs of each type of memory at one time. */
function podMemoryOf(claims: readonly Claim[]): Pick<Claim, 'memory'> {
  const types = new Set(claims.flatMap(({ memory }) => Object.keys(memory)));
  return { memory: Object.fromEntries([...types].map((type) => [type, podTotalOf(claims, type)])) };
}

/** What a pod needs of a resource at one time. */
function podTotalOf(claims: readonly Claim[], resource: string): number {
  let [starting, sidecars, apps] = [0, 0, 0];
  for (const { kind, requests } of claims) {
    const amount = requests[resource] ?? 0;
    if (kind === 'app') apps += amount;
    else if (kind === 'sidecar') sidecars += amount;
    else starting = Math.max(starting, sidecars + amount);
  }
  return Math.max(starting, sidecars + apps);
}

/** Facts that a letter about CPUs explains. */
const isOfCpus = (fact: string) =>
  ['admitted', 'the answer', 'the shared pool'].includes(fact) || /'s (CPUs|hint)$/.test(fact);

const recordedCpus = ({ containers = {} }: RecordedResult) =>
  new Map(Object.entries(containers).map(([name, { cpus, hint }]) => [name, { cpus, hint }] as const));

/** D9: as much is free in every group of nodes. */
function isSameInGroups(node: RecordedNode, { memory }: Placement): boolean {
  const { memoryFree } = node;
  const groups = groupsOfNodes(recordedBlocks(node));
  const sums = (bytes: BytesByNode) => {
    const byGroup: Record<string, number> = {};
    for (const [node, types] of Object.entries(bytes)) {
      for (const [type, free] of Object.entries(types)) {
        const key = `${type} of ${groups?.get(Number(node)) ?? node}`;
        byGroup[key] = (byGroup[key] ?? 0) + free;
      }
    }
    return JSON.stringify(Object.entries(byGroup).sort());
  };
  return sums(memoryFree) === sums(column(memory, 'free'));
}

function placementText({ pods, sharedPool, memory }: Placement): string {
  return JSON.stringify({ pods: [...pods], sharedPool, memoryFree: column(memory, 'free') });
}

/**
 * What a pod has once all its containers have started: of init containers that have ended the
 * memory is free.
 */
function onceStarted(holdings: Holdings, claims: readonly Claim[]): Holdings {
  const ended = new Set(claims.filter(({ kind }) => kind === 'init').map(({ name }) => name));
  const entries = Object.entries(holdings).map(([name, holding]) => {
    return [name, ended.has(name) ? { ...holding, memory: [] } : holding] as const;
  });
  return Object.fromEntries(entries);
}

/** C2: a hugepage size that one node does not list. */
function lacksHugepageSize(nodes: readonly RecordedNumaNode[]): boolean {
  const sizesOf = ({ hugepages }: RecordedNumaNode) => new Set(hugepages.map(({ sizeKiB }) => sizeKiB));
  const all = new Set(nodes.flatMap((node) => [...sizesOf(node)]));
  return nodes.some((node) => sizesOf(node).size < all.size);
}

/** A2: the remembered combination of nodes can be overwritten. */
function isAliased({ cpuPolicyOptions }: Config, machine: MachineJson): boolean {
  return cpuPolicyOptions['distribute-cpus-across-numa'] === 'true' && machine.numNumaNodes >= 5;
}

/** A1: the reserved CPUs are those that the own sizes of elements lead to. */
function isOfOwnSizes({ config }: ScenarioCase, reserved: string, machine: MachineJson): boolean {
  const { cpuPolicyOptions: options } = config;
  const isOn = (option: string) => options[option] === 'true';
  if (!isIrregular(machine)) return false;
  if (isOn('distribute-cpus-across-numa') || isOn('prefer-align-cpus-by-uncorecache')) return true;
  const all = new Set(machine.cpus.map((row) => row[machine.columns.indexOf('cpu')]!));
  const strategy = isOn('distribute-cpus-across-cores') ? 'spread' : 'packed';
  return reserved === listOf(kubeletTake(machine, all, idsOf(reserved).size, { strategy, sizes: 'own' }));
}

/** Where in the scenario it failed. */
function at(
  i: number,
  { op, podUid }: Operation,
  { detail }: Extract<Result, { outcome: 'failed' }>,
): Result {
  const step = `step ${i} (${op}${podUid === undefined ? '' : ` ${podUid}`})`;
  return failed(`at ${step} ${detail.expected}`, detail.got);
}

/** The configuration must be refused, and as one that is wrong. */
async function startRefused(
  vector: ScenarioCase,
  options: ManagerOptions,
  { numalign }: Context,
): Promise<Result> {
  const expected = `a refusal to start (upstream: ${vector.startError ?? 'starts'})`;
  try {
    (await numalign.openManager(options)).close();
    return failed(expected, 'a manager');
  } catch (error) {
    const isRefusal = error instanceof numalign.NumalignError && error.code === 'ERR_INVALID_OPTION';
    return isRefusal ? passed : failed(expected, describeError(error));
  }
}

/** The machine; undefined if it is refused for an L3 cache of several sockets (T1). */
async function discovered(machine: MachineJson, { numalign }: Context) {
  try {
    return await numalign.discover({ json: machine });
  } catch (error) {
    const isRefused = error instanceof numalign.NumalignError && error.code === 'ERR_INVALID_TOPOLOGY';
    if (isRefused && hasSharedL3(machine)) return undefined;
    throw error;
  }
}

async function start(vector: ScenarioCase, folder: string, context: Context): Promise<Result> {
  const machine = machineOf(vector, context.described(vector.machine.topology));
  const topology = await discovered(machine, context);
  if (!topology) return diverged('T1');
  const options = { ...optionsOf(vector), topology, stateDir: join(folder, 'state') };
  if (vector.startError !== undefined) return startRefused(vector, options, context);

  // D11: upstream's figure wraps around there.
  if (capacitiesOf(vector.machine.nodes).some(({ allocatable }) => allocatable < 0)) {
    const refused = await startRefused(vector, options, context);
    return refused.outcome === 'passed' ? diverged('D11') : refused;
  }

  let node = await DrivenNode.open(context.numalign, options, vector.machine.deviceResources);
  const { reservedCpusEffective = null, config } = vector;
  let letter: string | undefined;
  if (reservedCpusEffective !== null && node.reserved !== reservedCpusEffective) {
    letter = isAliased(config, machine)
      ? 'A2'
      : isOfOwnSizes(vector, node.reserved, machine)
        ? 'A1'
        : undefined;
    const isValid =
      idsOf(node.reserved).size === idsOf(reservedCpusEffective).size && config.reservedCpus === null;
    if (!letter || !isValid) return failed(`the reserved CPUs ${reservedCpusEffective}`, node.reserved);
    const { systemReserved: _, ...others } = options;
    node.close();
    const given = {
      ...others,
      reservedSystemCPUs: reservedCpusEffective,
      stateDir: join(folder, 'recorded'),
    };
    node = await DrivenNode.open(context.numalign, given, vector.machine.deviceResources);
  }
  const result = await new Replay(vector, machine, node).play();
  node.close();
  return letter !== undefined && result.outcome !== 'failed' ? diverged(letter) : result;
}

// State folders usually lie in memory. Every step writes, and a disk would be waited for.
const HOME = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

async function run(theCase: Case, context: Context): Promise<Result> {
  const vector = theCase as ScenarioCase;
  const folder = mkdtempSync(join(HOME, 'numalign-scenario-'));
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
