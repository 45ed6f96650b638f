// The parts of the state files about quiet grants: their requests, and the kernel settings that
// numalign changed for them. Pure.
import type { QuietRecord, QuietSetting } from '../../account/assignments.js';
import { type CacheShare, QUIET_PARTS, type QuietRequest } from '../../account/pod-assignment.js';
import type { Shape } from '../../base/shapes.js';
import {
  flag,
  list,
  listOf,
  members,
  nullable,
  object,
  oneOf,
  orNull,
  text,
  unknownOf,
  whole,
} from './shapes.js';

function cacheShare(value: unknown, where: string): CacheShare {
  const { ways, percent } = object(value, where);
  return ways === undefined
    ? { percent: whole(percent, `${where}.percent`) }
    : { ways: whole(ways, `${where}.ways`) };
}

const partsOf = members<Omit<QuietRequest, 'housekeeping'>>(
  {
    interrupts: flag,
    workqueues: flag,
    packets: flag,
    idle: nullable(members({ maxLatency: whole }, 'quiet.idle.')),
    frequency: flag,
    cache: nullable(cacheShare),
  },
  'quiet.',
);

/** @throws ERR_STATE_CORRUPT */
export const decodeQuietRequest: Shape<QuietRequest> = (value, where) => {
  const { housekeeping } = object(value, where);
  const parts = partsOf(value, where);
  return housekeeping === undefined
    ? parts
    : { ...parts, housekeeping: whole(housekeeping, 'quiet.housekeeping') };
};

function decodeSetting(value: unknown, where: string): QuietSetting {
  const { part, path, identity, original, written, refusal, isLeftover = false } = object(value, where);
  return {
    part: oneOf(part, 'part', QUIET_PARTS),
    path: text(path, 'path'),
    identity: orNull(identity, 'identity', text),
    original: text(original, 'original'),
    written: list(written, 'written').map((each) => text(each, 'written')),
    refusal: orNull(refusal, 'refusal', text),
    isLeftover: flag(isLeftover, 'isLeftover'),
  };
}

/** null if no setting is changed. @throws ERR_STATE_CORRUPT */
export function decodeQuiet(value: unknown, where: string): QuietRecord | null {
  if (value === undefined || value === null) return null;
  const fields = object(value, where);
  return {
    settings: listOf(fields.settings, `${where}.settings`, decodeSetting),
    unknown: unknownOf(fields, ['settings']),
  };
}
