// The kubelet's holdings that agents recorded, and grants that were given some of them. Events are
// in the order of their times.

const HOLDS_ON = Number.POSITIVE_INFINITY;

/**
 * What the kubelet certainly had on record, and when: { keys, from, to }. From the moment its agent
 * learned so until another begins to record and is not refused. The record survives its keeper.
 * `deaths`: of agents, by number.
 */
export function kubeletRecords(events, deaths) {
  const all = [];
  const last = new Map();
  for (const { event, agent, keys, time } of events) {
    const record = last.get(agent);
    if (event === 'recorded') record.from = record.until = time;
    if (event === 'refused') record.isRefused = true;
    if (event !== 'records') continue;
    const until = deaths.get(agent) ?? HOLDS_ON;
    const begun = { keys: new Set(keys), begun: time, from: HOLDS_ON, until, isRefused: false };
    last.set(agent, begun);
    all.push(begun);
  }
  const made = all.filter(({ isRefused }) => !isRefused);
  for (const record of made) {
    // What an agent began and did not finish happens by its death, or never.
    const others = made.filter((other) => other !== record && other.until > record.begun);
    record.to = Math.min(...others.map(({ begun }) => begun));
  }
  return made.filter(({ from, to }) => from < to);
}

/** In words: what a grant was given while the kubelet had it. */
export function grantedOfKubelet(events, records) {
  const before = new Map();
  const found = [];
  for (const { event, agent, uid, keys, bridge, asked, time } of events) {
    const last = before.get(uid);
    if (event === 'drops') before.set(uid, { ...last, since: time });
    if (event !== 'holds') continue;
    before.set(uid, { keys });
    // The decision was between these two moments.
    const since = asked ?? last?.since ?? 0;
    const gained = bridge ? keys.filter((key) => !last?.keys?.includes(key)) : keys;
    for (const record of records) {
      if (record.from > since || record.to < time) continue;
      const wrong = gained.filter((key) => record.keys.has(key));
      if (wrong.length > 0)
        found.push(`grant ${uid} of agent ${agent} got ${wrong.join(', ')}, which the kubelet had`);
    }
  }
  return found;
}
