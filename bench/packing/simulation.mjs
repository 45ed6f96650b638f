// A simulation: requests come to a node, are admitted or rejected, and go.

/** Grants that will end, in the order of their times. */
class Departures {
  #all = [];

  add(departure) {
    let at = this.#all.length;
    while (at > 0 && this.#all[at - 1].time < departure.time) at--;
    this.#all.splice(at, 0, departure);
  }

  /** The next one, unless it is later than `time`. */
  takeUntil(time) {
    return (this.#all.at(-1)?.time ?? Number.POSITIVE_INFINITY) <= time ? this.#all.pop() : undefined;
  }
}

/**
 * What has happened from `begin` to the last arrival; what comes before fills the node. CPU time is
 * the integral of the CPUs in use on record; `cpuTimeAsked` is the same by what was requested, and
 * for how long. `admitted` and `departed` count from the start, `present` are the remaining grants.
 * @param node `admit(request, uid)` returns { admitted, moves, distance } or the rejection {
 * isFragmented, isAvoidable }; `release(uid)`; `cpusInUse`; `grants`: their number
 */
export function simulate(node, arrivals, begin) {
  const departures = new Departures();
  const end = arrivals.at(-1)?.time ?? begin;
  const sums = {
    ...{ arrivals: 0, cpusAsked: 0, accepted: 0, cpusAccepted: 0, rejected: 0, fragmented: 0, avoidable: 0 },
    ...{ moves: 0, distance: 0, cpuTime: 0, cpuTimeAsked: 0, admitted: 0, departed: 0 },
  };
  let now = 0;
  const advance = (time) => {
    sums.cpuTime += node.cpusInUse * Math.max(0, time - Math.max(now, begin));
    now = time;
  };
  for (const [i, request] of arrivals.entries()) {
    for (;;) {
      const next = departures.takeUntil(request.time);
      if (next === undefined) break;
      advance(next.time);
      node.release(next.uid);
      sums.departed++;
    }
    advance(request.time);
    const uid = `pod-${i}`;
    const answer = node.admit(request, uid);
    if (answer.admitted) {
      const departure = request.time + request.duration;
      departures.add({ time: departure, uid });
      sums.admitted++;
      sums.cpuTimeAsked +=
        request.cpu * Math.max(0, Math.min(departure, end) - Math.max(request.time, begin));
    }
    if (request.time >= begin) count(sums, request, answer);
  }
  return { ...sums, span: Math.max(0, end - begin), present: node.grants };
}

function count(sums, { cpu }, { admitted, moves, distance, isFragmented, isAvoidable }) {
  sums.arrivals++;
  sums.cpusAsked += cpu;
  if (admitted) {
    sums.accepted++;
    sums.cpusAccepted += cpu;
    sums.moves += moves;
    sums.distance += cpu * distance;
  } else {
    sums.rejected++;
    if (isFragmented) sums.fragmented++;
    if (isAvoidable) sums.avoidable++;
  }
}

const contradiction = (message) => Object.assign(new Error(message), { code: 'ERR_SIMULATION' });

/**
 * Checks that a node's record agrees with what has come and gone.
 * @throws ERR_SIMULATION
 */
export function checkSums({ admitted, departed, present, cpuTime, cpuTimeAsked }) {
  if (admitted - departed !== present)
    throw contradiction(`${admitted} admitted less ${departed} departed are not the ${present} present`);
  if (Math.abs(cpuTime - cpuTimeAsked) > 1e-9 * Math.max(1, cpuTimeAsked))
    throw contradiction(`${cpuTime} of CPU time on record are not the ${cpuTimeAsked} that were asked for`);
}
