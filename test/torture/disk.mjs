// A disk that loses what was not synced: built from a trace of the shim, it tells every folder that
// a power cut could leave behind.
//
// The model. What changes a folder (create, link, rename, unlink, mkdir) reaches the disk in order:
// after a power cut a first part of it is there, at least up to the last fsync of that folder. The
// folders' parts are independent of each other, but a rename between two is one step, of the folder
// it leaves. The bytes of a file are safe up to its last fsync. What was written later may be there,
// not be there, be there by half, or as zeros; what it did not touch is safe. Of lines that were
// written at the end of a file every byte length is looked at.

const folderOf = (path) => {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '.' : path.slice(0, slash);
};

// A file, by whatever names: what was written to it, in order, and how much of that is safe.
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

  /** What programs read of it. */
  get bytes() {
    return this.#after(this.writes.length);
  }

  // No byte before this one was touched since the last fsync.
  get #touched() {
    return Math.min(...this.writes.slice(this.safe).map(({ offset, size }) => size ?? offset));
  }

  /** What may be read of it, by what became of the bytes that are not safe. */
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
   * Where lines were written at the end of what is safe: every length that these may have, and each
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

// Of the folder itself; owners' files beside.
const NEVER_SYNCED = new Set(['lock', 'state.copy.json', 'state.copy.json.new']);

export class Disk {
  #descriptors = new Map();
  /** What programs see: by path a file, or 'folder'. */
  #now = new Map([['.', 'folder']]);
  /** By folder: what was done to it, in order, and how much of that is safe. */
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
        // Not one of a file that was opened for writing: a folder.
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

  /** What programs read now; undefined where there is no such file. */
  read(path) {
    return this.#now.get(path)?.bytes;
  }

  // The ways in which each folder's changes may be there in part. Of folders that are never synced
  // only both ends: they promise nothing.
  #parts(promising) {
    return [...this.#changes].map(([folder, { list, safe }]) => {
      const all = Array.from({ length: list.length - safe + 1 }, (_, i) => safe + i);
      const counts = promising.has(folder) ? all : [...new Set([safe, list.length])];
      return counts.map((count) => ({ folder, count, list }));
    });
  }

  /**
   * Every image that may be left if the power fails now: { files: by path the bytes or 'folder',
   * how: in words, isLength: one of many ends of what was written last }. `promising`: folders whose
   * every order matters; of the files, each that is not safe takes every variant.
   */
  *images(promising) {
    for (const parts of product(this.#parts(promising))) {
      const files = new Map([['.', 'folder']]);
      const changes = parts
        .flatMap(({ list, count }) => list.slice(0, count))
        .sort((a, b) => a.order - b.order);
      for (const { apply } of changes) apply(files);
      // Nothing is in a folder that is not there.
      for (const path of [...files.keys()]) if (!isReachable(files, path)) files.delete(path);
      const distinct = [...new Set([...files.values()].filter((file) => file !== 'folder'))];
      // Some texts are never synced, so that only some of their variants are looked at, all alike.
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
      // Lengths are many: only where all of the folders' changes are there, or none that may be lost.
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
