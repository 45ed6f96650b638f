// The calls of the core whose arguments go over the wire of words. What is written here one after another,
// native/core/wire.cc reads in the same order.
import type {
  BestFitCall,
  CpuHintsCall,
  DeviceHintsCall,
  HintQuestion,
  HintsToMerge,
  MemoryHintsCall,
  MergeRules,
  PackedHints,
} from './native-hints.js';
import type { Native } from './native-surface.js';
import type { NativeMove, NativePinOutcome } from './native-threads.js';
import { type Answer, type AnswerReader, type TopologyHandle, Wire, type Words } from './words.js';

type Ask<Of extends unknown[] = []> = (...of: Of) => Answer;
type OnTopology = Ask<[topology: TopologyHandle]>;
type PerhapsOnTopology = Ask<[topology: TopologyHandle | undefined]>;

/** The functions of the addon that use the wire. Sets, lists and numbers are on it. */
export interface WiredFunctions
  extends Record<'bestFit' | 'cpuHints' | 'wholeCores', OnTopology>,
    Record<'mergeHints' | 'decide', PerhapsOnTopology>,
    Record<'memoryHints' | 'deviceHints' | 'listHints' | 'withoutPreferred', Ask> {
  setWire(words: Words, amounts: Float64Array): void;
  isHintFamily(): boolean;
  pin(tid: number, grant?: string, part?: string, owner?: string, replace?: boolean): Answer;
}

type Wired = Pick<Native, Exclude<keyof WiredFunctions, 'setWire'>>;

const NONE: readonly number[] = [];

function putCpus(wire: Wire, call: CpuHintsCall): void {
  wire.list(call.available);
  wire.list(call.reusable);
  wire.word(call.count);
  wire.flag(call.alignBySocket);
  wire.flag(call.wholeCores);
  wire.flag(call.keepsReusable);
  wire.numbers(call.claims);
}

function putMemory(wire: Wire, call: MemoryHintsCall): void {
  wire.word(call.types);
  wire.amounts(call.amounts);
  wire.amounts(call.reusable);
  wire.numbers(call.groups);
  wire.numbers(call.must);
  wire.numbers(call.closed);
}

function putDevices(wire: Wire, call: DeviceHintsCall): void {
  wire.word(call.request);
  wire.flag(call.onlyNearDevices);
  wire.numbers(call.devices);
}

const isQuestion = (hints: PackedHints | HintQuestion): hints is HintQuestion =>
  (hints as Partial<HintQuestion>).kind !== undefined;

function putFamily(wire: Wire, { words }: PackedHints): void {
  wire.word(0);
  wire.list(words);
}

// Puts a question behind its kind, and returns the topology that one about CPUs is for.
function putQuestion(wire: Wire, question: HintQuestion): TopologyHandle | undefined {
  if (question.kind === 'cpus') {
    wire.word(1);
    putCpus(wire, question.call);
    return question.call.topology;
  }
  if (question.kind === 'memory') {
    wire.word(2);
    putMemory(wire, question.call);
  } else {
    wire.word(3);
    putDevices(wire, question.call);
  }
  return undefined;
}

function putBestFit(wire: Wire, call: BestFitCall): void {
  wire.list(call.available);
  wire.word(call.count);
  wire.list(call.near);
  wire.word(call.nearNodes);
  wire.word(call.cpuGroupSize);
  wire.word(call.flags);
  wire.numbers(call.later);
}

// Returns the topology that its question about CPUs is for.
function putMerge(wire: Wire, asked: HintsToMerge, rules: MergeRules): TopologyHandle | undefined {
  const { distances, joint } = rules;
  wire.word(rules.numaNodes.length);
  wire.word(rules.policy);
  if (distances) wire.list(distances);
  else wire.numbers(NONE);
  wire.flag(joint !== undefined);
  if (joint) {
    wire.numbers(joint.within);
    wire.numbers(joint.rooms);
    wire.numbers(joint.devices);
  }
  wire.word(asked.length);
  let topology: TopologyHandle | undefined;
  for (let i = 0; i < asked.length; i++) {
    const { hints } = asked[i]!;
    if (!isQuestion(hints)) putFamily(wire, hints);
    else if (i === 0 || hints !== asked[i - 1]!.hints) topology = putQuestion(wire, hints) ?? topology;
  }
  return topology;
}

// `cpus`: the mask that the caller requested. All moved threads share it, as sets never change.
function outcomeOf(answer: AnswerReader, cpus: Words): NativePinOutcome {
  const moved: NativeMove[] = [];
  const unmovable: NativeMove[] = [];
  for (let count = answer.word(); count > 0; count--)
    moved.push({ tid: answer.word(), before: answer.list(), now: cpus, errno: 0 });
  for (let count = answer.word(); count > 0; count--) {
    const [tid, errno] = [answer.word(), answer.word()];
    unmovable.push({ tid, before: answer.list(), now: answer.list(), errno });
  }
  return { moved, unmovable };
}

/** The functions for callers that pass plain arguments. */
export function wired(addon: WiredFunctions): Wired {
  const wire = new Wire(addon);
  return {
    bestFit(call) {
      putBestFit(wire.begin(), call);
      return wire.wordsOf(addon.bestFit(call.topology));
    },

    cpuHints(call) {
      putCpus(wire.begin(), call);
      return wire.wordsOf(addon.cpuHints(call.topology));
    },

    memoryHints(call) {
      wire.begin().word(call.nodes);
      putMemory(wire, call);
      return wire.wordsOf(addon.memoryHints());
    },

    deviceHints(call) {
      wire.begin().word(call.nodes);
      putDevices(wire, call);
      return wire.wordsOf(addon.deviceHints());
    },

    wholeCores(topology, cpus) {
      wire.begin().list(cpus);
      return wire.wordsOf(addon.wholeCores(topology));
    },

    pin({ tid, cpus, grant, part, owner, replace }) {
      wire.begin().list(cpus);
      const answer = grant === '' ? addon.pin(tid) : addon.pin(tid, grant, part, owner, replace);
      return outcomeOf(wire.read(answer), cpus);
    },

    isHintFamily(family, nodes) {
      wire.begin().list(family);
      wire.word(nodes);
      return addon.isHintFamily();
    },

    listHints({ family, after, limit, isBounded }) {
      wire.begin().list(family);
      wire.numbers(after);
      wire.word(limit);
      wire.flag(isBounded);
      return wire.wordsOf(addon.listHints());
    },

    withoutPreferred(family, masks) {
      wire.begin().list(family);
      wire.numbers(masks);
      return wire.wordsOf(addon.withoutPreferred());
    },

    mergeHints: (asked, rules) => wire.read(addon.mergeHints(putMerge(wire.begin(), asked, rules))),

    decide(call) {
      const { hint, cpus } = call;
      const topology = putMerge(wire.begin(), call.asked, call.rules) ?? cpus?.topology;
      wire.flag(hint === undefined);
      wire.flag(call.lists);
      if (hint) {
        wire.flag(hint.mask === null);
        wire.numbers(hint.mask ?? NONE);
        wire.flag(hint.preferred);
      }
      wire.flag(call.bySocket);
      wire.flag(call.isNarrowed);
      wire.flag(cpus !== undefined);
      if (cpus) putBestFit(wire, cpus);
      wire.flag(call.takesMemory);
      return wire.read(addon.decide(topology));
    },
  };
}
