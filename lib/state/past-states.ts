// PastStates: states that were in force at an earlier time, by the lines that the files still have.
import { unlessRefused } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import { finish } from '../base/steps.js';
import { EARLIER_FILE, STATE_FILE } from './files/state-files.js';
import type { Checkpoint } from './format/checkpoint.js';
import { STATE_FORMAT } from './format/journal.js';
import { Replay } from './format/replay.js';
import { linesOf, versionOf } from './format/sealed-json.js';

const VERSIONS: readonly unknown[] = [...STATE_FORMAT.older, STATE_FORMAT.version];

/**
 * The states that were in force between two times, in milliseconds since 1970, the earliest first.
 * Damaged lines, and those of newer versions, are as if they were not there.
 */
export function* statesBetween(folder: NativeFolder, from: number, to: number): Generator<Checkpoint> {
  let replay = new Replay({ isLenient: true });
  // When the state of the replay began; undefined: what came next is missing.
  let began: number | undefined;
  function* endAt(time: number) {
    if (began === undefined || began > to || time < from) return;
    const state = unlessRefused(() => finish(replay.checkpoint()));
    if (!state) return;
    // The next one decodes what has changed only.
    replay = new Replay({ before: state, isLenient: true });
    yield state;
  }
  for (const members of pastLines(folder)) {
    const time = Date.parse(String(members.writtenAt));
    const next = replay.generation + (members.line === 'state' ? 0 : 1);
    if (members.generation === next) yield* endAt(time);
    began = undefined;
    unlessRefused(() => {
      replay.take(members);
      if (replay.generation === members.generation) began = time;
    });
  }
  yield* endAt(Number.POSITIVE_INFINITY);
}

function* pastLines(folder: NativeFolder) {
  for (const name of [EARLIER_FILE, STATE_FILE]) {
    const bytes = unlessRefused(() => folder.read(name));
    if (!bytes || !VERSIONS.includes(versionOf(STATE_FORMAT, bytes))) continue;
    for (const { members } of linesOf(bytes)) if (members && members.format === undefined) yield members;
  }
}
