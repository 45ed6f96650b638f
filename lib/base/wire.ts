// The wire: two arrays that the addon keeps, through which sets, hints and amounts go to the core
// and come back. To make or read a new typed array takes an addon longer than most of the core's
// work.
import { types } from 'node:util';
import type { CpuHintsCall, HintQuestion, PackedHints } from './native-hints.js';
import type { Native } from './native-surface.js';
import type { NativeMove, NativePinOutcome } from './native-threads.js';
import { copyPart, type TopologyHandle, type Words } from './words.js';

/** The number of words on the wire, or the words themselves if the wire is too short. */
type Answer = number | Words;

/**
 * The functions of the addon that use the wire. They take the number of words of each set and list;
 * the words are on the wire, in the order of the arguments.
 */
export interface WiredFunctions {
  setWire(words: Words, amounts: Float64Array): void;
  /**
   * `flags`: spread | alignByL3 << 1 | distributeAcrossNuma << 2 | wholeCores << 3 | anyRestInL3 <<
   * 4.
   */
  bestFit(
    topology: TopologyHandle,
    available: number,
    count: number,
    flags: number,
    cpuGroupSize: number,
    elsewhere: number,
    later: number,
  ): Answer;
  /** `flags`: alignBySocket | wholeCores << 1 | keepsReusable << 2. */
  cpuHints(
    topology: TopologyHandle,
    available: number,
    reusable: number,
    count: number,
    flags: number,
    claims: number,
  ): Answer;
  memoryHints(
    nodes: number,
    types: number,
    amounts: number,
    reusable: number,
    groups: number,
    must: number,
  ): Answer;
  deviceHints(nodes: number, request: number, onlyNearDevices: boolean, devices: number): Answer;
  wholeCores(topology: TopologyHandle, cpus: number): Answer;
  isHintFamily(words: number, nodes: number): boolean;
  listHints(words: number, after: number, limit: number, isBounded: boolean): Answer;
  withoutPreferred(words: number, masks: number): Answer;
  /**
   * Returns [number of moved threads, number of unmovable threads; for each moved thread, which has
   * the requested mask: tid, length of its mask before, this mask; for each unmovable one: tid,
   * errno, lengths of its masks before and now, these masks].
   */
  pin(tid: number, cpus: number, grant?: string, part?: string, owner?: string, replace?: boolean): Answer;
  /**
   * The wire has: the numbers of hints and nodes, the policy, the numbers of distances and rooms;
   * the distances; for a joint choice its nodes and the rooms; for each family or question its kind
   * and its parts, each list after its length.
   */
  mergeHints(topology: TopologyHandle | undefined): Answer | undefined;
}

type Wired = Pick<Native, Exclude<keyof WiredFunctions, 'setWire'>>;

const LEAST = 4096;
// Words before the hints of a merge, and before the first list of a question.
const MERGE_HEADER = 5;
const QUESTION_HEADER = 3;

function wrongList(kind: string): never {
  throw new TypeError(`a ${kind} was expected`);
}

const isQuestion = (hints: PackedHints | HintQuestion): hints is HintQuestion =>
  (hints as Partial<HintQuestion>).kind !== undefined;

const cpuHintsFlags = ({ alignBySocket, wholeCores, keepsReusable }: CpuHintsCall) =>
  (alignBySocket ? 1 : 0) | (wholeCores ? 2 : 0) | (keepsReusable ? 4 : 0);

const MOVED_HEADER = 2;
const UNMOVABLE_HEADER = 4;

// `cpus`: the mask that the caller requested. All moved threads share it, as sets never change.
function outcomeOf(words: Words, cpus: Words): NativePinOutcome {
  const moved: NativeMove[] = [];
  const unmovable: NativeMove[] = [];
  let at = 2;
  for (let count = words[0]!; count > 0; count--) {
    const length = words[at + 1]!;
    moved.push({ tid: words[at]!, before: copyPart(words, at + MOVED_HEADER, length), now: cpus, errno: 0 });
    at += MOVED_HEADER + length;
  }
  for (let count = words[1]!; count > 0; count--) {
    const [before, now] = [words[at + 2]!, words[at + 3]!];
    const nowAt = at + UNMOVABLE_HEADER + before;
    unmovable.push({
      tid: words[at]!,
      before: copyPart(words, at + UNMOVABLE_HEADER, before),
      now: copyPart(words, nowAt, now),
      errno: words[at + 1]!,
    });
    at = nowAt + now;
  }
  return { moved, unmovable };
}

/** The functions for callers that pass plain arguments. */
export function wired(addon: WiredFunctions): Wired {
  let words = new Uint32Array(LEAST);
  let amounts = new Float64Array(LEAST);
  addon.setWire(words, amounts);

  function reserve(length: number, amountCount = 0): void {
    if (length <= words.length && amountCount <= amounts.length) return;
    const moreWords = length <= words.length ? words : new Uint32Array(2 * length);
    const moreAmounts = amountCount <= amounts.length ? amounts : new Float64Array(2 * amountCount);
    if (moreWords !== words) moreWords.set(words);
    if (moreAmounts !== amounts) moreAmounts.set(amounts);
    addon.setWire(moreWords, moreAmounts);
    [words, amounts] = [moreWords, moreAmounts];
  }

  // Puts a list on the wire and returns its length. Short lists are faster copyPart word by word.
  function put(list: Words, at: number): number {
    if (!types.isUint32Array(list)) wrongList('Uint32Array');
    const { length } = list;
    reserve(at + length);
    if (length > 64) words.set(list, at);
    else for (let i = 0; i < length; i++) words[at + i] = list[i]!;
    return length;
  }

  // Puts the intersection of two sets on the wire and returns its length.
  function putBoth(a: Words, b: Words): number {
    const length = Math.min(put(a, 0), b.length);
    for (let i = 0; i < length; i++) words[i]! &= b[i]!;
    return length;
  }

  // Copies each number: to make a typed array of the list would take longer.
  function putNumbers(list: readonly number[], at: number): number {
    if (!Array.isArray(list)) wrongList('list of numbers');
    const { length } = list;
    reserve(at + length);
    for (let i = 0; i < length; i++) words[at + i] = list[i]!;
    return length;
  }

  function putAmounts(list: readonly number[], at: number): number {
    if (!Array.isArray(list)) wrongList('list of numbers');
    const { length } = list;
    reserve(0, at + length);
    for (let i = 0; i < length; i++) amounts[at + i] = list[i]!;
    return length;
  }

  // Puts a list of numbers behind its length. Returns the position after it.
  function putBehindLength(list: Words | readonly number[], at: number): number {
    reserve(at + 1);
    words[at] = list.length;
    return at + 1 + (Array.isArray(list) ? putNumbers(list, at + 1) : put(list as Words, at + 1));
  }

  let amountsUsed = 0;

  // Puts amounts behind those already there, and their number among the words.
  function putAmountsApart(list: readonly number[], at: number): number {
    words[at] = list.length;
    amountsUsed += putAmounts(list, amountsUsed);
    return at + 1;
  }

  // Returns the position after the question.
  function putQuestion(question: HintQuestion, at: number): number {
    reserve(at + QUESTION_HEADER);
    switch (question.kind) {
      case 'cpus': {
        const { available, reusable, count, claims } = question.call;
        words[at] = 1;
        words[at + 1] = count;
        words[at + 2] = cpuHintsFlags(question.call);
        const next = putBehindLength(reusable, putBehindLength(available, at + 3));
        return putBehindLength(claims, next);
      }
      case 'memory': {
        const { types: count, groups, must, amounts: ofTypes, reusable } = question.call;
        words[at] = 2;
        words[at + 1] = count;
        const next = putBehindLength(must, putBehindLength(groups, at + 2));
        reserve(next + 2);
        return putAmountsApart(reusable, putAmountsApart(ofTypes, next));
      }
      case 'devices':
        words[at] = 3;
        words[at + 1] = question.call.request;
        words[at + 2] = question.call.onlyNearDevices ? 1 : 0;
        return putBehindLength(question.call.devices, at + 3);
    }
  }

  function wordsOf(answer: Answer): Words {
    if (typeof answer !== 'number') return answer;
    return copyPart(words, 0, answer);
  }

  return {
    bestFit(call) {
      const { topology, available, within, count, cpuGroupSize } = call;
      const { spread, alignByL3, distributeAcrossNuma, wholeCores, anyRestInL3, later } = call;
      const flags =
        Number(spread) |
        (Number(alignByL3) << 1) |
        (Number(distributeAcrossNuma) << 2) |
        (Number(wholeCores) << 3) |
        (Number(anyRestInL3) << 4);
      const length = within ? putBoth(available, within) : put(available, 0);
      const elsewhere = wholeCores ? put(available, length) : 0;
      // The core counts CPUs of both once.
      const laterLength = putNumbers(later, length + elsewhere);
      return wordsOf(addon.bestFit(topology, length, count, flags, cpuGroupSize, elsewhere, laterLength));
    },

    cpuHints(call) {
      const free = put(call.available, 0);
      const length = put(call.reusable, free);
      const claims = putNumbers(call.claims, free + length);
      return wordsOf(addon.cpuHints(call.topology, free, length, call.count, cpuHintsFlags(call), claims));
    },

    memoryHints({ nodes, types, amounts: ofTypes, groups, reusable, must }) {
      const first = putAmounts(ofTypes, 0);
      const rows = putAmounts(reusable, first);
      const groupWords = putNumbers(groups, 0);
      return wordsOf(addon.memoryHints(nodes, types, first, rows, groupWords, putNumbers(must, groupWords)));
    },

    deviceHints: ({ nodes, request, onlyNearDevices, devices }) =>
      wordsOf(addon.deviceHints(nodes, request, onlyNearDevices, putNumbers(devices, 0))),

    wholeCores: (topology, cpus) => wordsOf(addon.wholeCores(topology, put(cpus, 0))),

    pin({ tid, cpus, grant, part, owner, replace }) {
      const count = put(cpus, 0);
      const answer =
        grant === '' ? addon.pin(tid, count) : addon.pin(tid, count, grant, part, owner, replace);
      return outcomeOf(typeof answer === 'number' ? words : answer, cpus);
    },

    isHintFamily: (family, nodes) => addon.isHintFamily(put(family, 0), nodes),

    listHints({ family, after, limit, isBounded }) {
      const length = put(family, 0);
      return wordsOf(addon.listHints(length, putNumbers(after, length), limit, isBounded));
    },

    withoutPreferred(family, masks) {
      const length = put(family, 0);
      return wordsOf(addon.withoutPreferred(length, putNumbers(masks, length)));
    },

    mergeHints({ hints, nodes, policy, distances, joint }) {
      const count = distances ? put(distances, MERGE_HEADER) : 0;
      let at = MERGE_HEADER + count;
      if (joint) {
        at += putNumbers(joint.within, at);
        at += putNumbers(joint.rooms, at);
      }
      let topology: TopologyHandle | undefined;
      amountsUsed = 0;
      for (let i = 0; i < hints.length; i++) {
        const each = hints[i]!;
        if (!isQuestion(each)) {
          const length = put(each.words, at + 2);
          words[at] = 0;
          words[at + 1] = length;
          at += 2 + length;
        } else {
          if (each.kind === 'cpus') topology = each.call.topology;
          at = putQuestion(each, at);
        }
      }
      reserve(at);
      words[0] = hints.length;
      words[1] = nodes;
      words[2] = policy;
      words[3] = count;
      words[4] = joint ? joint.rooms.length : 0;
      const answer = addon.mergeHints(topology);
      return typeof answer === 'object' ? answer : words;
    },
  };
}
