// A disk that loses what was not synced. From a trace of the shim it lists every folder that a
// power cut could leave behind.
//
// The model: changes of a folder (create, link, rename, unlink, mkdir) reach the disk in order.
// After a power cut a first part of them is there, at least up to the last fsync of that folder.
// Folders are independent of each other, but a rename between two is one step, of the folder that
// the file leaves. The bytes of a file are safe up to its last fsync. Later writes may be there, be
// missing, be half there, or be zeros; bytes that they did not touch are safe. If lines were
// written at the end of a file, every byte length is tried.

const folderOf = (path) => {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '.' : path.slice(0, slash);
};

// A file under all its names: its writes in order, and how many of them are safe.
class DiskFile {
  writes = [];
  safe = 0;

  #after(count) {
    const writes = this.writes.slice(0, count);
    const ends = writes.map(({ offset, data, size }) => size ?? offset + data.length);
    const bytes = Buffer.alloc(Math.max(0, ...ends));
    let length = 0;
    for (const { offset, data, size } of writes) {
      if (size === undefined) data.copy(bytes, offset);
      else bytes.fill(0, size, length);
      length = size ?? Math.max(length, offset + data.length);
    }
    return bytes.subarray(0, length);
  }

  /** What programs read of the file. */
  get bytes() {
    return this.#after(this.writes.length);
  }

  // No write since the last fsync touched a byte before this one.
  get #touched() {
    return Math.min(...this.writes.slice(this.safe).map(({ offset, size }) => size ?? offset));
  }

  /** What programs may read of the file, for each fate of the bytes that are not safe. */
  variants() {
    const whole = this.bytes;
    if (this.safe === this.writes.length) return [{ name: 'whole', bytes: whole }];
    const old = this.#after(this.safe);
    const from = this.#touched;
    const half = Math.floor((from + whole.length) / 2);
    const kept = whole.subarray(0, from);
    const zeros = (length) => Buffer.alloc(Math.max(0, length));
    return [
      { name: 'whole', bytes: whole },
      { name: 'as synced', bytes: old },
      { name: 'empty', bytes: kept },
      { name: 'cut', bytes: whole.subarray(0, half) },
      { name: 'torn', bytes: mixOf(whole, old, half).subarray(0, whole.length) },
      { name: 'zeros', bytes: Buffer.concat([kept, zeros(whole.length - from)]) },
      { name: 'its first half', bytes: Buffer.concat([whole.subarray(0, half), zeros(whole.length - half)]) },
      { name: 'its last half', bytes: Buffer.concat([kept, zeros(half - from), whole.subarray(half)]) },
    ];
  }

  /**
   * If lines were written after the safe bytes: every length that these lines may have, and each
   * with the old bytes behind it.
   */
  *lengths() {
    if (this.safe === this.writes.length || this.safe === 0 || this.#touched === 0) return;
    const whole = this.bytes;
    const old = this.#after(this.safe);
    for (let n = this.#touched; n < whole.length; n++) {
      yield { name: `cut to ${n} bytes`, bytes: whole.subarray(0, n) };
      if (old.length > n) yield { name: `new up to byte ${n}`, bytes: mixOf(whole, old, n) };
    }
  }
}

const mixOf = (first, second, at) => Buffer.concat([first.subarray(0, at), second.subarray(at)]);

// Files of the folder itself; owner files are in a folder beside it.
const NEVER_SYNCED = new Set(['lock', 'state.copy.json', 'state.copy.json.new']);

export class Disk {
  #descriptors = new Map();
  /** What programs see: a file by path, or 'folder'. */
  #now = new Map([['.', 'folder']]);
  /** By folder: its changes in order, and how many of them are safe. */
  #changes = new Map([['.', { list: [], safe: 0 }]]);
  #order = 0;

  #change(path, apply) {
    const folder = folderOf(path);
    if (!this.#changes.has(folder)) this.#changes.set(folder, { list: [], safe: 0 });
    this.#changes.get(folder).list.push({ order: this.#order++, apply });
    apply(this.#now);
  }

  /** One line of the trace. */
  apply({ pid, op, path, fd, from, create, truncate, offset, bytes, size }) {
    const descriptor = `${pid} ${fd}`;
    const file = this.#descriptors.get(descriptor);
    switch (op) {
      case 'mkdir':
        if (path !== '.') this.#change(path, (files) => files.set(path, 'folder'));
        return;
      case 'open': {
        if (!this.#now.has(path)) {
          if (!create) throw new Error(`the trace opens ${path}, which is not there`);
          const made = new DiskFile();
          this.#change(path, (files) => files.set(path, made));
        }
        const opened = this.#now.get(path);
        if (truncate) opened.writes.push({ size: 0 });
        this.#descriptors.set(descriptor, opened);
        return;
      }
      case 'write':
        file.writes.push({ offset, data: Buffer.from(bytes, 'hex') });
        return;
      case 'truncate':
        file.writes.push({ size });
        return;
      case 'fsync':
        if (file) file.safe = file.writes.length;
        // A path that was not opened as a file for writing: a folder.
        else if (this.#changes.has(path)) this.#changes.get(path).safe = this.#changes.get(path).list.length;
        return;
      case 'close':
        this.#descriptors.delete(descriptor);
        return;
      case 'link': {
        const linked = this.#now.get(from);
        this.#change(path, (files) => files.set(path, linked));
        return;
      }
      case 'rename': {
        const moved = this.#now.get(from);
        this.#change(from, (files) => {
          files.delete(from);
          files.set(path, moved);
        });
        return;
      }
      case 'unlink':
        this.#change(path, (files) => files.delete(path));
    }
  }

  /** What programs read now; undefined if there is no such file. */
  read(path) {
    return this.#now.get(path)?.bytes;
  }

  // The parts of each folder's changes that may be there. Folders that are never synced promise
  // nothing, so that both ends suffice.
  #parts(promising) {
    return [...this.#changes].map(([folder, { list, safe }]) => {
      const all = Array.from({ length: list.length - safe + 1 }, (_, i) => safe + i);
      const counts = promising.has(folder) ? all : [...new Set([safe, list.length])];
      return counts.map((count) => ({ folder, count, list }));
    });
  }

  /**
   * Every image that may be left if the power fails now: { files: bytes or 'folder' by path, how: a
   * description, isLength: one of many lengths of the last write }. `promising`: folders for which
   * every order matters. Every variant of each unsafe file is included.
   */
  *images(promising) {
    for (const parts of product(this.#parts(promising))) {
      const files = new Map([['.', 'folder']]);
      const changes = parts
        .flatMap(({ list, count }) => list.slice(0, count))
        .sort((a, b) => a.order - b.order);
      for (const { apply } of changes) apply(files);
      // A folder that is missing has no files.
      for (const path of [...files.keys()]) if (!isReachable(files, path)) files.delete(path);
      const distinct = [...new Set([...files.values()].filter((file) => file !== 'folder'))];
      // Some files are never synced: a few of their variants suffice, since all are alike.
      const synced = (file) =>
        [...files].some(
          ([path, each]) => each === file && promising.has(folderOf(path)) && !NEVER_SYNCED.has(path),
        );
      const exact = distinct.filter(synced);
      const loose = distinct.filter((file) => !exact.includes(file));
      const looseVariants = [0, 1, 2, 3].map((i) =>
        loose.map((file) => [file, file.variants()[i] ?? file.variants()[0]]),
      );
      const image = (contents, isLength) => {
        const lost = parts
          .filter(({ list, count }) => count < list.length)
          .map(({ folder, list, count }) => `${list.length - count} changes of ${folder} lost`);
        const damaged = [...files]
          .filter(([, file]) => file !== 'folder' && contents.get(file).name !== 'whole')
          .map(([path, file]) => `${path} ${contents.get(file).name}`);
        const bytes = new Map(
          [...files].map(([path, file]) => [path, file === 'folder' ? file : contents.get(file).bytes]),
        );
        return { files: bytes, isLength, how: [...lost, ...damaged].join(', ') || 'nothing lost' };
      };
      const exactVariants = exact.map((file) => file.variants().map((variant) => [file, variant]));
      for (const chosen of product([...exactVariants, looseVariants]))
        yield image(new Map([...chosen.slice(0, -1), ...chosen.at(-1)]), false);
      // There are many lengths: only if all changes of the folders are there, or none that may be
      // lost.
      const isEnd =
        parts.every(({ list, count }) => count === list.length) ||
        parts.every(({ folder, count }) => count === this.#changes.get(folder).safe);
      if (!isEnd) continue;
      const whole = exactVariants.map(([first]) => first);
      for (const file of exact) {
        let i = 0;
        for (const variant of file.lengths())
          yield image(new Map([...whole, ...looseVariants[i++ % 4], [file, variant]]), true);
      }
    }
  }
}

function isReachable(files, path) {
  if (path === '.') return true;
  const folder = folderOf(path);
  return files.get(folder) === 'folder' && isReachable(files, folder);
}

function* product(lists) {
  if (lists.length === 0) {
    yield [];
    return;
  }
  for (const first of lists[0]) for (const rest of product(lists.slice(1))) yield [first, ...rest];
}
