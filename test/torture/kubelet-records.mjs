// What agents put on record of the kubelet's, and whether somebody was given any of it. Of events in the
// order of their times.

const HOLDS_ON = Number.POSITIVE_INFINITY;

/**
 * What the kubelet surely had on record, and when: { keys, from, to }. From the moment its agent was
 * told so until somebody else begins to record, and is not refused. It stays when its keeper ends.
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
    // What an agent began and did not finish is done by its death, or never.
    const others = made.filter((other) => other !== record && other.until > record.begun);
    record.to = Math.min(...others.map(({ begun }) => begun));
  }
  return made.filter(({ from, to }) => from < to);
}

/** In words: what was given to somebody while the kubelet had it. */
export function grantedOfKubelet(events, records) {
  const before = new Map();
  const found = [];
  for (const { event, agent, uid, keys, bridge, asked, time } of events) {
    const last = before.get(uid);
    if (event === 'drops') before.set(uid, { ...last, since: time });
    if (event !== 'holds') continue;
    before.set(uid, { keys });
    // It was decided between these two moments.
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
