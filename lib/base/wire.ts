// The wire: two arrays that the addon keeps, on which sets, hints and amounts go to the core and
// come back. A typed array that was just made is slow to look into for an addon, and slower to
// make: longer than most of the core's work takes.
import { types } from 'node:util';
import type { HintQuestion, Native, PackedHints } from './native-surface.js';
import type { NativeMove, NativePinOutcome } from './native-threads.js';
import { copied, type TopologyHandle, type Words } from './words.js';

/** How many words are on the wire, or the words themselves where they are too many for it. */
type Answer = number | Words;

/**
 * The functions of the addon that use the wire. For every set and list they get how many words
 * of it are there, in the order of the arguments.
 */
export interface WiredFunctions {
  setWire(words: Words, amounts: Float64Array): void;
  /** `flags`: spread | alignByL3 << 1 | distributeAcrossNuma << 2 | wholeCores << 3 | anyRestInL3 << 4. */
  bestFit(
    topology: TopologyHandle,
    available: number,
    count: number,
    flags: number,
    cpuGroupSize: number,
  ): Answer;
  cpuHints(
    topology: TopologyHandle,
    available: number,
    reusable: number,
    count: number,
    alignBySocket: boolean,
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
   * [how many moved, how many unmovable; of each that has moved, to where it was asked to: tid, words
   * of before, these words; of each other: tid, errno, words of before, words of now, these words]
   */
  pin(tid: number, cpus: number, grant?: string, part?: string, owner?: string, replace?: boolean): Answer;
  /**
   * On the wire: how many families and questions, nodes, the policy, how many distances, how many
   * rooms; the distances; for a joint choice the nodes that it is kept to and the rooms; of each its
   * kind and its parts, lists behind their lengths.
   */
  mergeHints(topology: TopologyHandle | undefined): Answer | undefined;
}

type Wired = Pick<Native, Exclude<keyof WiredFunctions, 'setWire'>>;

const LEAST = 4096;
// Words in front of what is merged, and of a question before its first list.
const MERGE_HEADER = 5;
const QUESTION_HEADER = 3;

// Whatever realm they are of.
function wrongList(kind: string): never {
  throw new TypeError(`a ${kind} was expected`);
}

const isQuestion = (hints: PackedHints | HintQuestion): hints is HintQuestion =>
  (hints as Partial<HintQuestion>).kind !== undefined;

const MOVED_HEADER = 2;
const UNMOVABLE_HEADER = 4;

// `cpus`: what was asked for. A set never changes: it stands for what all that have moved have now.
function outcomeOf(words: Words, cpus: Words): NativePinOutcome {
  const moved: NativeMove[] = [];
  const unmovable: NativeMove[] = [];
  let at = 2;
  for (let left = words[0]!; left > 0; left--) {
    const length = words[at + 1]!;
    moved.push({ tid: words[at]!, before: copied(words, at + MOVED_HEADER, length), now: cpus, errno: 0 });
    at += MOVED_HEADER + length;
  }
  for (let left = words[1]!; left > 0; left--) {
    const [before, now] = [words[at + 2]!, words[at + 3]!];
    const behind = at + UNMOVABLE_HEADER + before;
    unmovable.push({
      tid: words[at]!,
      before: copied(words, at + UNMOVABLE_HEADER, before),
      now: copied(words, behind, now),
      errno: words[at + 1]!,
    });
    at = behind + now;
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

  // Short lists are copied faster one by one. Answers how many.
  function put(list: Words, at: number): number {
    if (!types.isUint32Array(list)) wrongList('Uint32Array');
    const { length } = list;
    reserve(at + length);
    if (length > 64) words.set(list, at);
    else for (let i = 0; i < length; i++) words[at + i] = list[i]!;
    return length;
  }

  // The intersection of two sets.
  function putBoth(a: Words, b: Words): number {
    const length = Math.min(put(a, 0), b.length);
    for (let i = 0; i < length; i++) words[i]! &= b[i]!;
    return length;
  }

  // Lists of numbers become no typed array on their way: to make one takes longer than to copy it.
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

  function putBehindLength(list: Words, at: number): number {
    reserve(at + 1);
    words[at] = list.length;
    return at + 1 + put(list, at + 1);
  }

  function putNumbersBehindLength(list: readonly number[], at: number): number {
    reserve(at + 1);
    words[at] = list.length;
    return at + 1 + putNumbers(list, at + 1);
  }

  let amountsUsed = 0;

  // Their number goes among the words.
  function putAmountsApart(list: readonly number[], at: number): number {
    words[at] = list.length;
    amountsUsed += putAmounts(list, amountsUsed);
    return at + 1;
  }

  // Answers what is behind it.
  function putQuestion(question: HintQuestion, at: number): number {
    reserve(at + QUESTION_HEADER);
    switch (question.kind) {
      case 'cpus': {
        const { available, reusable, count, alignBySocket } = question.call;
        words[at] = 1;
        words[at + 1] = count;
        words[at + 2] = alignBySocket ? 1 : 0;
        return putBehindLength(reusable, putBehindLength(available, at + 3));
      }
      case 'memory': {
        const { types: count, groups, must, amounts: ofTypes, reusable } = question.call;
        words[at] = 2;
        words[at + 1] = count;
        const behind = putNumbersBehindLength(must, putNumbersBehindLength(groups, at + 2));
        reserve(behind + 2);
        return putAmountsApart(reusable, putAmountsApart(ofTypes, behind));
      }
      case 'devices':
        words[at] = 3;
        words[at + 1] = question.call.request;
        words[at + 2] = question.call.onlyNearDevices ? 1 : 0;
        return putNumbersBehindLength(question.call.devices, at + 3);
    }
  }

  function taken(answer: Answer): Words {
    if (typeof answer !== 'number') return answer;
    return copied(words, 0, answer);
  }

  return {
    bestFit(call) {
      const { topology, available, within, count, cpuGroupSize } = call;
      const { spread, alignByL3, distributeAcrossNuma, wholeCores, anyRestInL3 } = call;
      const flags =
        (spread ? 1 : 0) |
        (alignByL3 ? 2 : 0) |
        (distributeAcrossNuma ? 4 : 0) |
        (wholeCores ? 8 : 0) |
        (anyRestInL3 ? 16 : 0);
      const length = within ? putBoth(available, within) : put(available, 0);
      return taken(addon.bestFit(topology, length, count, flags, cpuGroupSize));
    },

    cpuHints({ topology, available, reusable, count, alignBySocket }) {
      const free = put(available, 0);
      return taken(addon.cpuHints(topology, free, put(reusable, free), count, alignBySocket));
    },

    memoryHints({ nodes, types, amounts: ofTypes, groups, reusable, must }) {
      const first = putAmounts(ofTypes, 0);
      const rows = putAmounts(reusable, first);
      const groupWords = putNumbers(groups, 0);
      return taken(addon.memoryHints(nodes, types, first, rows, groupWords, putNumbers(must, groupWords)));
    },

    deviceHints: ({ nodes, request, onlyNearDevices, devices }) =>
      taken(addon.deviceHints(nodes, request, onlyNearDevices, putNumbers(devices, 0))),

    wholeCores: (topology, cpus) => taken(addon.wholeCores(topology, put(cpus, 0))),

    pin({ tid, cpus, grant, part, owner, replace }) {
      const count = put(cpus, 0);
      const answer =
        grant === '' ? addon.pin(tid, count) : addon.pin(tid, count, grant, part, owner, replace);
      return outcomeOf(typeof answer === 'number' ? words : answer, cpus);
    },

    isHintFamily: (family, nodes) => addon.isHintFamily(put(family, 0), nodes),

    listHints({ family, after, limit, isBounded }) {
      const length = put(family, 0);
      return taken(addon.listHints(length, putNumbers(after, length), limit, isBounded));
    },

    withoutPreferred(family, masks) {
      const length = put(family, 0);
      return taken(addon.withoutPreferred(length, putNumbers(masks, length)));
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
