// MoveWatch: checks every generation of a state file against the rules for moves of
// docs/state-format.md, without code of the package.
import { isDeadOwner } from './owner-locks.mjs';
import { isPlaceholder, keysOfPod } from './state-file.mjs';

// A pending step is done or called off by then: the longest notice, the wait for a lock, and the
// stops of processes.
const LONGEST_MS = 6000;
// The next transactions give back what a dead owner has left: one of them may have failed, or have
// begun before.
const DEAD_MS = 2500;
const DEAD_GENERATIONS = 20;

const hasTarget = ({ containers }) => containers.some(({ name }) => name === '.target');
const moveOf = (pod) => pod?.upcoming?.move;
const textOf = (keys) => [...keys].sort().join(', ');
const placeKeys = ({ containers }) => keysOfPod({ containers, upcoming: null });
const requestsOf = ({ containers }) => JSON.stringify(containers.map(({ request }) => request));

// CPUs and memory, in all containers.
function amountsOf({ containers }) {
  const sums = {};
  for (const { memory } of containers)
    for (const { type, bytes } of memory) sums[type] = (sums[type] ?? 0) + bytes;
  return JSON.stringify([placeKeys({ containers }).size, Object.entries(sums).sort()]);
}

/** What is wrong with one step of a pod; undefined if nothing. `after`: all pods after the step. */
function flawOf(before, pod, after) {
  const [was, is] = [moveOf(before), moveOf(pod)];
  if (!was && !is) return undefined;
  if (is && !pod.movable && !pod.elastic) return 'moves without consent';
  if (before && (before.mixed !== pod.mixed || (before.movable === undefined && !before.elastic)))
    return 'is another grant by a move';
  const isSame = was && is && was.for === is.for && was.deadline === is.deadline;
  if (isSame) {
    const [held, now] = [keysOfPod(before), keysOfPod(pod)].map(textOf);
    if (held !== now) return `holds ${now} in the middle of a move, ${held} before`;
    const hasGone = was.target && !is.target && textOf(placeKeys(pod)) !== textOf(placeKeys(was.target));
    return hasGone ? 'is not where it was to go' : undefined;
  }
  // The move before is over, done or not, and this one is announced.
  if (is && !is.target) return 'has moved without an announcement';
  if (is && pod.elastic) {
    const { min, max } = pod.elastic;
    const cpus = [...placeKeys(is.target)].filter((key) => key.startsWith('cpu ')).length;
    if (cpus < min || cpus > max) return `is to have ${cpus} CPUs, of ${min} to ${max}`;
  } else if (is && amountsOf(is.target) !== amountsOf(pod)) {
    return 'is to have other amounts';
  }
  // Another grant may have requested something in the same step.
  if (!was || requestsOf(before) !== requestsOf(pod)) return undefined;
  const [stays, now] = [placeKeys(before), placeKeys(pod)].map(textOf);
  if (stays !== now && pod.upcoming === null) return `has ${now} once its move is over, ${stays} before`;
  return was.target ? undefined : roomFlaw(before, pod, after);
}

// The room that it leaves is kept for a request, if there is one.
function roomFlaw(before, pod, after) {
  const keeper = after.get(moveOf(before).for);
  if (!keeper || !isPlaceholder(keeper)) return undefined;
  const kept = new Set([...keysOfPod(keeper), ...keysOfPod(pod)]);
  const lost = [...keysOfPod(before)].filter((key) => !kept.has(key));
  return lost.length > 0 ? `has left ${lost.join(', ')}, which no request keeps` : undefined;
}

// Temporary records: each has a text, the owner file whose end ends it too, and a flag for records
// that are short-lived even so.
function passingOf(pods) {
  const moving = new Set([...pods.values()].flatMap((pod) => moveOf(pod)?.for ?? []));
  return [...pods.values()].flatMap((pod) => {
    const { uid, owner, upcoming } = pod;
    const all = [];
    if (owner.kind === 'process' && !pod.formerOwner)
      all.push({
        text: `${isPlaceholder(pod) ? 'room' : 'grant'} ${uid}`,
        owner: owner.uuid,
        isShort: false,
      });
    if (upcoming) {
      const { deadline = '', target } = upcoming.move ?? {};
      const step = upcoming.move ? (target ? 'announced' : 'begun') : 'resize';
      all.push({ text: `${step} ${upcoming.cpus} of ${uid} ${deadline}`, owner: upcoming.by, isShort: true });
    }
    if (hasTarget(pod) && !moving.has(uid))
      all.push({ text: `room of no move at ${uid}`, owner: owner.uuid, isShort: true });
    return all;
  });
}

// Millicores of the shared pool that are booked for mixed grants, and the rest of the pool for
// them.
function sharedOf(pods, grantable) {
  const held = new Set([...pods.values()].flatMap((pod) => [...keysOfPod(pod)]));
  const free = grantable.filter((cpu) => !held.has(`cpu ${cpu}`)).length;
  const booked = [...pods.values()].reduce((sum, { mixed = 0 }) => sum + mixed, 0);
  return { free, booked };
}

export class MoveWatch {
  #stateDir;
  #grantable;
  #last = { generation: 0, pods: new Map(), hasKubelet: false };
  #moves = new Set();
  // By text: when it appeared; and if its owner is dead, since when and since which generation.
  #passing = new Map();
  #found = [];

  /** `grantable`: the CPUs that grants may have. */
  constructor(stateDir, grantable) {
    this.#stateDir = stateDir;
    this.#grantable = grantable;
  }

  /** How many moves were completed. */
  get moves() {
    return this.#moves.size;
  }

  /** A generation of the state, as `decodeMembers` describes it. */
  sees({ generation, kubelet }, pods, change) {
    const { generation: before, pods: were, hasKubelet } = this.#last;
    if (generation <= before) return;
    const isNext = change && generation === before + 1;
    for (const pod of change?.pods ?? (isNext ? [] : pods.values())) {
      for (const at of pod.moves ?? []) this.#moves.add(`${pod.uid} ${at}`);
      // CPUs that the kubelet takes have no owner any more.
      const flaw = isNext && !kubelet && !hasKubelet ? flawOf(were.get(pod.uid), pod, pods) : undefined;
      if (flaw) this.#found.push(`generation ${generation}: grant ${pod.uid} ${flaw}`);
      const isAnnounced = isNext && moveOf(pod)?.target && !moveOf(were.get(pod.uid)) && !kubelet;
      if (isAnnounced) this.#checkShared(generation, pods, were);
    }
    this.#last = { generation, pods: new Map(pods), hasKubelet: Boolean(kubelet) };
  }

  // A move takes CPUs of the shared pool that are not booked there.
  #checkShared(generation, pods, were) {
    const [{ free, booked }, before] = [pods, were].map((all) => sharedOf(all, this.#grantable));
    if (free < before.free && booked > free * 1000)
      this.#found.push(
        `generation ${generation}: ${booked}m of the shared pool are booked, ${free} CPUs left`,
      );
  }

  /** What was wrong since the last call, in words, and what has not ended by now (in ms). */
  flaws(now) {
    const { generation, pods } = this.#last;
    const before = this.#passing;
    this.#passing = new Map();
    for (const { text, owner, isShort } of passingOf(pods)) {
      const known = before.get(text) ?? { since: now };
      const isDead = isDeadOwner(this.#stateDir, owner);
      const dead = isDead ? (known.dead ?? { since: now, generation }) : undefined;
      this.#passing.set(text, Object.assign(known, { dead }));
      // Report it once.
      if (isShort && now - known.since > LONGEST_MS && !known.isTold) {
        this.#found.push(`${text} does not end`);
        known.isTold = true;
      }
      if (
        dead &&
        !dead.isTold &&
        now - dead.since > DEAD_MS &&
        generation - dead.generation > DEAD_GENERATIONS
      ) {
        this.#found.push(`${text} is there though ${owner} is dead`);
        dead.isTold = true;
      }
    }
    return this.#found.splice(0);
  }
}
