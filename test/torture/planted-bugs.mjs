// Bugs that the torture scripts must find.
//
// `before`: texts, exactly one of which occurs, once; `after` replaces it; `also`: more
// replacements. `find`: the script that must fail, `options` its options besides the seed,
// `seconds` its time if it needs more than the others.
export const BUGS = [
  {
    name: 'the new file is not synced before it is renamed',
    file: 'native/platform/files/folder.cc',
    before: ['if (fsync(fd) != 0) return error("fsync", "cannot sync " + beside);'],
    after: '',
    find: 'lost-writes.mjs',
  },
  {
    name: 'the folder is not synced after the rename',
    file: 'native/platform/files/folder.cc',
    before: ['if (fsync(fd_.get()) != 0) return error("fsync", "cannot sync the folder");'],
    after: '',
    find: 'lost-writes.mjs',
  },
  {
    name: 'a compaction renames before it syncs',
    file: 'native/platform/files/folder.cc',
    before: [
      `  if (fsync(fd) != 0) return error("fsync", "cannot sync " + beside);
  if (may_go_on) {
    if (Result<Done> allowed = may_go_on(); !allowed.ok()) return allowed.error();
  }
  if (renameat(fd_.get(), beside.c_str(), fd_.get(), name.c_str()) != 0)
    return error("rename", "cannot replace " + name);
`,
    ],
    after: `  if (may_go_on) {
    if (Result<Done> allowed = may_go_on(); !allowed.ok()) return allowed.error();
  }
  if (renameat(fd_.get(), beside.c_str(), fd_.get(), name.c_str()) != 0)
    return error("rename", "cannot replace " + name);
  if (fsync(fd) != 0) return error("fsync", "cannot sync " + beside);
`,
    find: 'lost-writes.mjs',
  },
  {
    name: 'a line is not synced once it is appended',
    file: 'native/platform/files/journal_file.cc',
    before: ['if (!folder.in_memory() && fdatasync'],
    after: 'if (folder.in_memory() && fdatasync',
    find: 'lost-writes.mjs',
  },
  {
    name: 'an unfinished line is not cut off',
    file: 'lib/state/state-writer.ts',
    before: ['      journal.cutTail();\n'],
    after: '',
    also: [
      {
        file: 'lib/state/state-writer.ts',
        before: ['file.append(at, sealed.line'],
        after: 'file.append(sizeOf(this.folder.version(STATE_FILE)!), sealed.line',
      },
    ],
    find: 'lost-writes.mjs',
  },
  {
    name: 'a line is accepted in spite of a bad checksum',
    file: 'lib/state/format/sealed-json.ts',
    before: ["return line.toString('latin1', body) === sealed(seal) ? seal : undefined;"],
    after: 'return seal;',
    find: 'damage.mjs',
    options: ['--sample', '40'],
  },
  {
    name: 'the offset is kept across a compaction',
    file: 'lib/state/files/journal-follower.ts',
    before: [
      `end: head.snapshot, hasTail: false };
    return withLines({ ...last, place: begin }, next.read(head.snapshot, sizeOf(version) - head.snapshot));`,
    ],
    after: `hasTail: false };
    return withLines({ ...last, place: begin }, next.read(place.end));`,
    find: 'fuzz-state.mjs',
  },
  {
    name: 'the lock file is removed after use',
    file: 'lib/state/ledger.ts',
    before: ['      });\n    } finally {\n      lock.release();'],
    after: "      });\n    } finally {\n      this.#folder.folder.remove('lock');\n      lock.release();",
    find: 'torture.mjs',
  },
  {
    name: 'a pid is trusted instead of the lock',
    file: 'lib/state/owners/owners.ts',
    before: [
      'return this.isOwn(owner) || this.folder.isOwnerAlive(owner.uuid);',
      'return this.isOwn(owner) || isOwnerAlive(this.folder, owner, locks);',
    ],
    after: `try {
      process.kill(owner.pid!, 0);
      return true;
    } catch {
      return this.isOwn(owner);
    }`,
    find: 'torture.mjs',
  },
  {
    name: 'a state that was put back counts as the newest',
    file: 'lib/state/state-reader.ts',
    before: [
      'if (why) return damaged(why, { generation: Math.max(highest, checkpoint.generation), checkpoint });',
    ],
    after: '',
    also: [
      {
        file: 'lib/state/files/state-files.ts',
        before: ['if (generation >= highest || checkpoint.refusal)'],
        after: 'if (generation >= 0)',
      },
    ],
    find: 'torture.mjs',
    options: ['--disturbed'],
  },
  {
    name: 'an owner whose file was removed is dead',
    file: 'lib/state/files/owner-claims.ts',
    before: ['return owners.isOwnerAlive(uuid) || (locks?.().has(uuid) ?? false);'],
    after: 'return owners.isOwnerAlive(uuid);',
    find: 'torture.mjs',
    options: ['--disturbed'],
  },
  {
    name: 'a file that is gone from the folder counts as never written',
    file: 'lib/state/files/owner-claims.ts',
    before: ['locks?.beside(withFile) ?? []'],
    after: 'withFile.slice(withFile.length).map((uuid) => ({ uuid, since: 0 }))',
    find: 'torture.mjs',
    options: ['--disturbed'],
  },
  {
    name: 'a recovery that fails takes the claims of owners',
    file: 'lib/state/owners/owners.ts',
    before: ['if (!isCommitted && before === undefined) return;'],
    after: '',
    find: 'torture.mjs',
    options: ['--disturbed'],
  },
  {
    name: 'CPUs of the kubelet are granted',
    file: 'lib/account/pools.ts',
    before: ['return kubelet === null ? granted : granted.union(kubeletCpus(kubelet));'],
    after: 'return kubelet === null ? granted : granted.difference(kubeletCpus(kubelet));',
    find: 'torture.mjs',
  },
  {
    name: 'a request that cannot wait keeps its place',
    file: 'lib/state/wait-queue.ts',
    before: [
      'lockNote());\n    const ticket = this.#own.join(number);\n    this.#files.set(ticket, file);\n',
    ],
    after: `'');
    const ticket = this.#own.join(number);
    this.#files.set(ticket, file);
    file.write(lockNote());
`,
    find: 'torture.mjs',
  },
  {
    name: 'the choice of a member is recorded again by a user without the rights to move it',
    file: 'lib/enforcement/members/process-confiner.ts',
    before: ['const { before, planned } = plan;'],
    after: `const { before } = plan;
    const planned = plan.planned.isRefused ? { ...plan.planned, isRefused: false, moved: 1 } : plan.planned;`,
    find: 'torture.mjs',
  },
  {
    name: 'a setting of the kernel is written before it is on record',
    file: 'lib/quiet/machine-quieter.ts',
    before: ['const nextState = withSettings(next, settingsDuring(plan));'],
    after: 'const nextState = next;',
    find: 'torture.mjs',
    options: ['--quiet'],
  },
  {
    name: 'settings of the kernel are restored after the commit that ends a grant',
    file: 'lib/quiet/machine-quieter.ts',
    before: ['if (lasting !== former) {'],
    after: 'if (lasting !== former && former.length < 0) {',
    find: 'torture.mjs',
    options: ['--quiet'],
  },
  {
    name: 'a move gives up its old CPUs before its pages have followed',
    file: 'lib/decision/changes/move-steps.ts',
    before: ['const next = replacePod(state, { ...pod, ...move.target, upcoming, former: placeCpus(pod) });'],
    after: 'const next = replacePod(state, { ...pod, ...move.target, upcoming: null });',
    find: 'torture.mjs',
    options: ['--moves'],
  },
  {
    name: 'the room of a moved grant is not kept for its request',
    file: 'lib/decision/changes/move-steps.ts',
    before: ['return keeper ? replacePod(next, withRoom(keeper, left)) : next;'],
    after: 'return keeper ? replacePod(next, withRoom(keeper, left.difference(left))) : next;',
    find: 'torture.mjs',
    options: ['--moves'],
  },
  {
    name: 'a move that was called off goes on',
    file: 'lib/changes/carry-out.ts',
    before: ['const pod = announcedPod(state, announced);\n    if (!pod)'],
    after: 'const pod = announced;\n    if (!pod)',
    find: 'torture.mjs',
    options: ['--moves'],
  },
  {
    name: 'room that its request does not get is not given back',
    file: 'lib/changes/move-grant.ts',
    before: ['withoutPlaceholder(state, request) === state || releaseRoom(host, request);'],
    after: 'withoutPlaceholder(state, request) !== undefined;',
    find: 'torture.mjs',
    options: ['--moves', '--pause', '0'],
    seconds: 120,
  },
];
