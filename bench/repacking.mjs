// Looking for moves: a full machine on which a request fits in sum, but on no NUMA node. Each call
// uses another state than the one before.
import { emptyAssignments } from '../dist-test/lib/account/assignments.js';
import { removePods } from '../dist-test/lib/account/pod-changes.js';
import { repack } from '../dist-test/lib/decision/changes/repacking.js';
import { decideWhether } from '../dist-test/lib/decision/decision.js';
import { DEFAULT_SETTINGS } from '../dist-test/lib/decision/machine-settings.js';
import { discover } from '../dist-test/lib/entries/topology.js';
import { CpuSet, NodeSet } from '../dist-test/lib/index.js';
import { parsePlacement } from '../dist-test/lib/input/placement.js';
import { parseAdmit } from '../dist-test/lib/input/requests/request.js';
import { podOf } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';
import { inTurn, randomNumbers } from './support/random.mjs';

export const description =
  'up to two moves that make room on 2 and 8 NUMA nodes: where one does, two do, and none do';
export const explanation = `
Grants of random sizes come and go until the machine is full. Each call searches moves for a
\`single-numa-node\` request that was rejected, in 16 such states in turn. All grants may move.`;

const GIB = 2 ** 30;
const CASES = 16;
const MOST_STATES = 4000;
const LIMITS = { maxMoves: 2, budget: 256 };
const OWNER = { kind: 'persistent', uuid: '', pid: null, command: null, cgroup: null, unknown: {} };

function machineOf(nodes, cpus, threads) {
  const rows = Array.from({ length: nodes * cpus }, (_, cpu) => {
    const [node, core] = [Math.floor(cpu / cpus), cpu - (cpu % threads)];
    return [cpu, core, node, node];
  });
  return {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: rows,
    nodes: Array.from({ length: nodes }, (_, id) => ({ id, memory: 4 * cpus * GIB })),
  };
}

// A machine after many grants have come and gone.
class FullMachine {
  #topology;
  #random;
  #options;
  #sizes;
  #count = 0;
  state;

  constructor(topology, random, { options, sizes }) {
    this.#topology = topology;
    this.#random = random;
    this.#options = options;
    this.#sizes = sizes;
    this.state = emptyAssignments({ ...DEFAULT_SETTINGS, simulated: true });
  }

  /** The next request, admitted or not. */
  question() {
    const uid = `pod-${this.#count++}`;
    const cpu = this.#sizes[this.#random(this.#sizes.length)];
    const pod = podOf({ cpu, memory: cpu * (2 + this.#random(4)) * GIB }, uid);
    return {
      topology: this.#topology,
      present: { online: this.#topology.cpus, isolated: CpuSet.EMPTY },
      state: this.state,
      request: parseAdmit(pod, this.#options, parsePlacement({})),
      resources: new Map(),
      providers: [],
      owner: OWNER,
      uid,
      trialUid: uid,
      now: '2026-01-01T00:00:00.000Z',
      dryRun: true,
    };
  }

  admit(decision) {
    const movable = { maxPerHour: null, noticeMs: 0, exclude: NodeSet.EMPTY };
    const next = decision.next();
    const pods = next.pods.map((pod) => (pod === decision.pod ? { ...pod, movable } : pod));
    this.state = { ...next, pods };
  }

  releaseOne() {
    const { uid } = this.state.pods[this.#random(this.state.pods.length)];
    this.state = { ...removePods(this.state, new Set([uid])), lastCpus: [] };
  }
}

/** Questions by the number of moves that answer them; 0 if none do. */
function casesOf(topology, setting) {
  const random = randomNumbers(topology.cpus.size);
  const machine = new FullMachine(topology, random, setting);
  const cases = [[], [], []];
  for (let i = 0; i < MOST_STATES && cases.some((list) => list.length < CASES); i++) {
    const question = machine.question();
    const decision = decideWhether(question);
    if (decision) {
      machine.admit(decision);
      continue;
    }
    const answer = repack(question, question.state.pods, LIMITS);
    const isSearch = answer.isFound || answer.reason === 'grants';
    const list = cases[answer.isFound ? answer.moves.length : 0];
    if (isSearch && list.length < CASES) list.push(question);
    for (let leaving = 1 + random(3); leaving > 0; leaving--) machine.releaseOne();
  }
  return cases;
}

async function rowsOf(machine, topology, setting) {
  const cases = casesOf(topology, setting);
  const rows = [];
  for (const [moves, questions] of cases.entries()) {
    if (questions.length === 0) continue;
    const next = inTurn(questions);
    const call = () => {
      const question = next();
      return repack(question, question.state.pods, LIMITS);
    };
    const answers = questions.map(call);
    const isExact = answers.every(({ isBounded }) => !isBounded);
    const grants = Math.max(...questions.map(({ state }) => state.pods.length));
    const row = await measured(
      `${machine}, ${moves === 0 ? 'none' : moves === 1 ? '1 move' : `${moves} moves`}`,
      call,
    );
    const remark = `${questions.length} states, up to ${grants} grants${isExact ? ', all exact' : ', NOT all exact'}`;
    rows.push({ ...row, inexact: isExact ? 0 : 1, remark });
  }
  return rows;
}

export async function run() {
  const options = { policy: 'single-numa-node' };
  const cores = { ...options, cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
  const [two, eight, large] = await Promise.all(
    [machineOf(2, 48, 2), machineOf(8, 16, 2), machineOf(8, 64, 2)].map((json) => discover({ json })),
  );
  const sizes = [1, 1, 2, 2, 3, 4, 4, 6, 8, 12];
  return [
    ...(await rowsOf('2 x 48', two, { options, sizes: [...sizes, 16, 32] })),
    ...(await rowsOf('8 x 16', eight, { options, sizes })),
    ...(await rowsOf('8 x 16 in whole cores', eight, {
      options: cores,
      sizes: sizes.map((size) => 2 * Math.ceil(size / 2)),
    })),
    ...(await rowsOf('8 x 64', large, { options, sizes: [...sizes, 16, 32] })),
  ];
}
