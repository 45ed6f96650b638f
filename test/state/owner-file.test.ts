// needs: nothing
// What an owner's file says, line by line, and which files are damaged.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/index.js';
import {
  claimLine,
  decodeOwnerFile,
  encodeOwnerFile,
  endLine,
  generationIn,
  kindIn,
  type OwnerFile,
  releaseLine,
  sealedPart,
  settingsLine,
} from '../../lib/state/format/owner-file.js';
import { thrownBy } from '../support/error-of.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

const { request } = quiet('0');
const grant = (uid: string, owner = 'ab', cpu = Number(uid)) => podOf(uid, owner, CpuSet.of(cpu), request);

const FILE: OwnerFile = {
  ...{ uuid: 'ab', kind: 'process', pid: 1, command: 'test', cgroup: null, bootId: 'boot' },
  ...{ generation: 3, settings: DEFAULT_SETTINGS, kubelet: null, pods: [grant('1')] },
};

const bodyOf = (file: OwnerFile) => encodeOwnerFile(file).trimEnd().split('\n').slice(0, -1);
/** A file whose body has these lines, too. */
const withLines = (file: OwnerFile, ...lines: string[]) => {
  const body = [...bodyOf(file), ...lines.map((line) => line.trimEnd())];
  return Buffer.from(`${body.join('\n')}\n${endLine(body.length)}`);
};
const grantsIn = (bytes: Buffer) => decodeOwnerFile(bytes).pods.map(({ uid }) => uid);
const flawOf = (bytes: Buffer) => {
  const error = thrownBy(() => decodeOwnerFile(bytes));
  expect(error).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  return error!.message;
};

describe('an owner’s file', () => {
  it('says what it was written with', () => {
    expect(decodeOwnerFile(withLines(FILE))).toEqual(FILE);
    expect(kindIn(withLines(FILE))).toBe('process');
    expect(kindIn(Buffer.from('{"format":'))).toBeUndefined();
  });

  it('has the grants that its later lines claim, without those that they release', () => {
    const [claim, release] = [claimLine(4, grant('2')), releaseLine(5, '1')];
    expect(grantsIn(withLines(FILE, claim))).toEqual(['1', '2']);
    expect(grantsIn(withLines(FILE, claim, release))).toEqual(['2']);
    expect(grantsIn(withLines(FILE, release, claimLine(6, grant('1'))))).toEqual(['1']);
  });

  it('has the generation and the settings of its last lines', () => {
    const settings = { ...DEFAULT_SETTINGS, strictCPUReservation: true };
    const file = withLines(FILE, settingsLine(4, settings), claimLine(5, grant('2')));
    expect(decodeOwnerFile(file)).toMatchObject({ generation: 5, settings });
    expect([generationIn(file), generationIn(withLines(FILE)), generationIn(Buffer.from(''))]).toEqual([
      ...[5, 3, undefined],
    ]);
  });

  it('is damaged if it has a grant of another owner, or a cgroup is not named', () => {
    expect(flawOf(withLines(FILE, claimLine(4, grant('2', 'cd'))))).toMatch(
      /grant 2 in it belongs to another/,
    );
    expect(flawOf(withLines({ ...FILE, kind: 'cgroup' }))).toMatch(/it names no cgroup/);
  });

  it('may have a grant that its owner has given away, which still runs there', () => {
    const given = { ...grant('2', 'cd'), formerOwner: 'ab' };
    expect(grantsIn(withLines(FILE, claimLine(4, given)))).toEqual(['1', '2']);
  });

  it('is damaged if a line is missing, changed or more than it says', () => {
    const whole = withLines(FILE, claimLine(4, grant('2'))).toString('latin1');
    const lines = whole.trimEnd().split('\n');
    const fileOf = (some: string[]) => Buffer.from(`${some.join('\n')}\n`, 'latin1');
    expect(flawOf(fileOf(lines.slice(0, -1)))).toMatch(/cut short|damaged/);
    expect(flawOf(fileOf(lines.toSpliced(1, 1)))).toMatch(/cut short/);
    expect(flawOf(fileOf([...lines.slice(0, -1), lines[1]!, lines.at(-1)!]))).toMatch(/cut short/);
    expect(flawOf(Buffer.from(whole.replace('"pid":1', '"pid":2'), 'latin1'))).toMatch(
      /a line of it is damaged/,
    );
  });

  it('is no owner’s file if it begins like something else, or is empty', () => {
    for (const text of ['', '{}\n', '{"format":"numalign-owner","version":0,\n'])
      expect(flawOf(Buffer.from(text))).toMatch(/does not begin like the owner’s file/);
  });

  it.each(['9', '9}', '12', 'NaN,', '-1,', ',', '1e1,', '0x1,'])(
    'is no owner’s file with the version %s',
    (version) => {
      const text = `{"format":"numalign-owner","version":${version}`;
      expect(flawOf(Buffer.from(text))).toMatch(/does not begin like the owner’s file/);
    },
  );
});

describe('an owner’s file of version 1', () => {
  const { pods, ...head } = FILE;
  const member = (key: string, value: unknown) => `,"${key}":${JSON.stringify(value)}`;
  const [line] = bodyOf({ ...FILE, pods: [] });
  const members = JSON.parse(line!);
  const text = `{"format":"numalign-owner","version":1${member('uuid', head.uuid)}${member('kind', head.kind)}${member('pid', 1)}${member('command', 'test')}${member('cgroup', null)}${member('bootId', 'boot')}${member('generation', 3)}${member('settings', members.settings)}${member('pods', [])}`;
  const sealed = (body: string, of = body) =>
    Buffer.from(`${body},"checksum":"sha256:${createHash('sha256').update(of).digest('hex')}"}\n`);

  it('is read, and damaged if its checksum differs', () => {
    expect(decodeOwnerFile(sealed(text))).toEqual({ ...FILE, pods: [] });
    expect(flawOf(sealed(text.replace('"pid":1', '"pid":2'), text))).toMatch(/checksum does not match/);
  });
});

describe('the sealed part of an owner’s file', () => {
  const releases = Array.from({ length: 20 }, (_, i) => releaseLine(4 + i, `${i}`));
  /** A file with this many lines behind what its owner has sealed. */
  const written = (count: number) => withLines(FILE, ...releases.slice(0, count));
  const partOf = (bytes: Buffer, sealed: Buffer) => {
    const seal = crc32(sealed);
    return sealedPart(bytes, (checksum) => checksum === seal)?.toString();
  };

  it('is the whole file once it is sealed', () => {
    expect(partOf(written(3), written(3))).toBe(written(3).toString());
  });

  it.each([1, 2, 16])('is what the file said before the last %i lines of a stopped owner', (count) => {
    expect(partOf(written(count), written(0))).toBe(written(0).toString());
    expect(partOf(written(count + 1), written(1))).toBe(written(1).toString());
  });

  it('is not what other programs have changed, put back or torn', () => {
    const changed = Buffer.from(written(1).toString().replace('"pid":1', '"pid":2'));
    expect(partOf(changed, written(0))).toBeUndefined();
    expect(partOf(written(0), written(1))).toBeUndefined();
    expect(partOf(written(2).subarray(0, -5), written(0))).toBeUndefined();
    for (const bytes of [Buffer.alloc(0), Buffer.from(endLine(0)), Buffer.from(endLine(5)), written(17)])
      expect(partOf(bytes, written(0))).toBeUndefined();
  });
});
