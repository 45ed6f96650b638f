// History: what agents reported to hold, and when; and what others saw meanwhile. All times are of
// CLOCK_MONOTONIC in nanoseconds, the same in all processes, so that the order of two events does
// not depend on which pipe was read first.
//
// A holding is certain from the moment its agent learns of it until the moment before the agent
// begins to give it away or is killed. The real one is longer. So two certain holdings of one CPU
// that overlap are two real ones, whatever the timing.

import { grantedOfKubelet, kubeletRecords } from './kubelet-records.mjs';

const HOLDS_ON = Number.POSITIVE_INFINITY;

export class History {
  #events = [];
  #deaths = new Map();
  #children = [];
  #reads = [];
  #states = [];
  #snapshots = [];
  #disturbances = [];

  /**
   * A third party changes the folder: generations may go back, and the state may lack what is held
   * until its owner has written it again.
   */
  disturbed(action, time) {
    this.#disturbances.push({ action, time });
  }

  /** A line of agent number `agent`. */
  add(agent, event) {
    if (event.event === 'read')
      this.#reads.push({
        observer: agent,
        begun: event.begun,
        ended: event.time,
        generation: event.generation,
      });
    else if (event.event === 'child') this.#children.push({ agent, ...event });
    else this.#events.push({ agent, ...event });
  }

  /** The agent was alive until `time` or later. */
  died(agent, time) {
    this.#deaths.set(agent, Math.min(time, this.#deaths.get(agent) ?? time));
  }

  childDied(pid, time) {
    for (const child of this.#children) if (child.pid === pid) child.until = Math.min(child.until, time);
  }

  /** The state file, as read between two moments. */
  sawState(begun, ended, state) {
    this.#states.push({ begun, ended, pods: state.pods });
    this.#reads.push({ observer: 'checker', begun, ended, generation: state.generation });
  }

  /** Masks of processes that were all stopped: { time, processes: [{ agent or child, masks }] }. */
  sawMasks(snapshot) {
    this.#snapshots.push(snapshot);
  }

  // Everything that an agent owns ends with the last process that has its lock.
  #ownerEnd(agent) {
    const ends = this.#children.filter((child) => child.agent === agent).map(({ until }) => until);
    return Math.max(this.#deaths.get(agent) ?? HOLDS_ON, ...ends);
  }

  // Any agent can release a persistent grant, even before its agent learns of it.
  #firstReleases() {
    const first = new Map();
    for (const { event, uid, release, time } of this.#events) {
      if (event === 'drops' && release) first.set(uid, Math.min(time, first.get(uid) ?? time));
    }
    return first;
  }

  /** The certain holdings: { uid, agent, keys, from, to }. */
  holdings() {
    const events = this.#byTime();
    const released = this.#firstReleases();
    const open = new Map();
    const last = new Map();
    const all = [];
    const close = (uid, time) => {
      const holding = open.get(uid);
      if (!holding) return;
      holding.to = Math.min(time, holding.persistent ? HOLDS_ON : this.#ownerEnd(holding.agent));
      if (holding.persistent) holding.to = Math.min(holding.to, released.get(uid) ?? HOLDS_ON);
      open.delete(uid);
      last.set(uid, holding);
      if (holding.to > holding.from) all.push(holding);
    };
    for (const { event, agent, uid, keys, size, persistent, bridge, time } of events) {
      if (event === 'drops') close(uid, time);
      if (event !== 'holds') continue;
      close(uid, time);
      // Once an agent has tried to release a persistent grant, nothing is certain.
      const isSure = !persistent || time < (released.get(uid) ?? HOLDS_ON);
      const before = bridge && isSure ? last.get(uid) : undefined;
      if (before && before.to < time) {
        const both = keys.filter((key) => before.keys.has(key));
        all.push({ uid, agent, persistent, keys: new Set(both), from: before.to, to: time });
      }
      open.set(uid, { uid, agent, persistent, keys: new Set(keys), size, from: time, to: HOLDS_ON });
    }
    for (const uid of [...open.keys()]) close(uid, HOLDS_ON);
    return all;
  }

  /**
   * Persistent grants that must be there, by id, with their CPUs, or their number of CPUs if the
   * CPUs are unknown; those that must not be there; and those that an agent learned of.
   */
  persistent() {
    const must = new Map();
    for (const { uid, keys, size, persistent, to } of this.holdings())
      if (persistent && to === HOLDS_ON) must.set(uid, { keys, size });
    const ended = new Set(this.#events.filter(({ event }) => event === 'released').map(({ uid }) => uid));
    const known = new Set(this.#events.filter(({ event }) => event === 'holds').map(({ uid }) => uid));
    return { must, ended, known };
  }

  #doubleGrants(holdings) {
    const byKey = new Map();
    for (const holding of holdings) {
      for (const key of holding.keys) {
        if (!byKey.has(key)) byKey.set(key, []);
        byKey.get(key).push(holding);
      }
    }
    const found = [];
    for (const [key, list] of byKey) {
      list.sort((a, b) => a.from - b.from);
      let longest = list[0];
      for (const next of list.slice(1)) {
        if (next.from < longest.to && next.uid !== longest.uid) {
          found.push(`${key} is held by ${describe(longest)} and by ${describe(next)} at once`);
        }
        if (next.to > longest.to) longest = next;
      }
    }
    return found;
  }

  /** As {@link kubeletRecords}. */
  kubeletRecords() {
    return kubeletRecords(this.#byTime(), this.#deaths);
  }

  #byTime() {
    return [...this.#events].sort((a, b) => a.time - b.time);
  }

  // A process that looks after another has finished looking must not see less.
  #generationsBack() {
    const byStart = [...this.#reads].filter(({ begun }) => begun > 0).sort((a, b) => a.begun - b.begun);
    const byEnd = [...this.#reads].sort((a, b) => a.ended - b.ended);
    const found = [];
    let highest = { generation: 0 };
    let i = 0;
    for (const read of byStart) {
      for (; i < byEnd.length && byEnd[i].ended < read.begun; i++) {
        if (byEnd[i].generation > highest.generation) highest = byEnd[i];
      }
      if (read.generation < highest.generation) {
        found.push(
          `${read.observer} read generation ${read.generation} after ${highest.observer} had read ${highest.generation}`,
        );
      }
    }
    return found;
  }

  // What is certainly held while the file is read is in it.
  #missingInState(holdings) {
    const found = [];
    const sorted = [...holdings].sort((a, b) => a.from - b.from);
    for (const { begun, ended, pods } of this.#states) {
      for (const { uid, keys, agent, from, to } of sorted) {
        if (from > begun) break;
        if (to < ended) continue;
        const pod = pods.get(uid);
        const missing = [...keys].filter((key) => !pod?.keys.has(key));
        if (missing.length > 0)
          found.push(
            `the state lacks ${missing.join(', ')} of grant ${uid} of agent ${agent}${pod ? '' : ': the whole grant'}`,
          );
      }
    }
    return found;
  }

  // At a moment when all are stopped: pinned processes run where they are pinned, and no process
  // runs on another's CPUs.
  #strayThreads(holdings) {
    const pins = this.#pins();
    const found = [];
    for (const { time, processes } of this.#snapshots) {
      const atWork = holdings.filter(({ from, to }) => from <= time && time < to);
      for (const { agent, child, masks } of processes) {
        const ofAgent = pins.filter((pin) => pin.agent === agent && pin.from <= time);
        const pin = child ? this.#childPin(child, time) : ofAgent.find(({ to }) => time < to);
        // A thread that is left behind is where it was last pinned.
        const former = ofAgent.slice(-1).filter(({ to }) => to <= time);
        const name = child ? `child ${child}` : `agent ${agent}`;
        for (const { tid, cpus } of masks) {
          if (pin && cpus.some((cpu) => !pin.cpus.includes(cpu))) {
            found.push(
              `thread ${tid} of ${name} may run on ${cpus}, pinned to ${pin.cpus} for grant ${pin.uid}`,
            );
          }
          for (const holding of atWork) {
            if (!cpus.every((cpu) => holding.keys.has(`cpu ${cpu}`))) continue;
            const wrong = pin ?? former.find((old) => isLeftBehind(old, cpus, holding, time));
            if (wrong && (wrong !== pin || pin.uid !== holding.uid)) {
              const before = `pinned for grant ${wrong.uid} from ${seconds(wrong.from)} to ${seconds(wrong.to)}`;
              found.push(
                `thread ${tid} of ${name}, ${before}, runs on ${cpus} at ${seconds(time)}, which are of ${describe(holding)}`,
              );
            }
          }
        }
      }
    }
    return found;
  }

  #childPin(pid, time) {
    const child = this.#children.find((each) => each.pid === pid && each.time <= time && time < each.until);
    return child && { uid: child.uid, cpus: child.cpus };
  }

  #pins() {
    const open = new Map();
    const all = [];
    for (const { event, agent, uid, cpus, time } of this.#byTime()) {
      const key = `${agent} ${uid}`;
      if (event === 'pinned') {
        const pin = { agent, uid, cpus, from: time, to: this.#deaths.get(agent) ?? HOLDS_ON };
        open.set(key, pin);
        all.push(pin);
      }
      if (event === 'unpinned' && open.has(key)) {
        open.get(key).to = Math.min(open.get(key).to, time);
        open.delete(key);
      }
      if (event === 'left') {
        for (const pin of all) if (pin.agent === agent && pin.uid === uid) pin.left = time;
      }
    }
    return all;
  }

  /** Every promise that was broken, in words. */
  violations() {
    const holdings = this.holdings();
    return [
      ...this.#doubleGrants(holdings),
      ...(this.#disturbances.length > 0
        ? []
        : [
            ...this.#generationsBack(),
            ...this.#missingInState(holdings),
            ...grantedOfKubelet(this.#byTime(), this.kubeletRecords()),
          ]),
      ...this.#strayThreads(holdings),
    ];
  }

  /** Everything on record, for the analysis of a failure. */
  toJSON() {
    const deaths = Object.fromEntries(this.#deaths);
    return {
      ...{ events: this.#events, deaths, children: this.#children },
      ...{ reads: this.#reads, snapshots: this.#snapshots, disturbances: this.#disturbances },
    };
  }
}

// True if a pinned thread is where it was, though another grant is there. The process that hands a
// grant on leaves after the successor has it.
function isLeftBehind(old, cpus, holding, time) {
  if (holding.agent === old.agent || !cpus.every((cpu) => old.cpus.includes(cpu))) return false;
  return holding.uid !== old.uid || (old.left ?? HOLDS_ON) <= time;
}

const seconds = (time) => (time === HOLDS_ON ? 'the end' : `${(time / 1e9).toFixed(6)} s`);

function describe({ uid, agent, from, to }) {
  return `grant ${uid} of agent ${agent} (from ${seconds(from)} to ${seconds(to)})`;
}
