// The lines of a state file that `numalign state show` prints. Pure.
import type { JournalLine, StateJournal } from 'numalign/diagnostics';
import { table } from '../terminal/table.js';
import type { Page } from '../terminal/terminal.js';
import { countText, printable } from '../terminal/text.js';

const COLUMNS = [
  { title: 'OFFSET' },
  { title: 'GENERATION' },
  { title: 'WRITTEN', isLesser: true },
  { title: 'WHAT IT SAYS', flexible: true },
];

// The members that a change replaces, with their names for people.
const REPLACED = {
  settings: 'settings',
  cpus: 'CPUs of the machine',
  memory: 'memory',
  lastCpus: 'last CPUs',
  kubelet: "record of the kubelet's pods",
  quiet: "record of the kernel's settings that quiet grants have changed",
};

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
// Even a line with a good checksum can have any content.
const fieldsOf = (value: unknown) => (value ?? {}) as Readonly<Record<string, unknown>>;
const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

// The first characters of a uid are enough next to a name.
const ID_LENGTH = 8;

function grantTitle(pod: unknown): string {
  const { uid, name } = fieldsOf(pod);
  return name === undefined || name === uid
    ? textOf(uid)
    : `${textOf(name)} (${textOf(uid).slice(0, ID_LENGTH)})`;
}

function holdingText(pod: unknown): string {
  const { booking, containers: list } = fieldsOf(pod);
  const containers = listIn(list).map(fieldsOf);
  const cpus = (booking ? [fieldsOf(booking)] : containers)
    .map((container) => container.cpus)
    .filter((list) => list !== undefined && list !== '');
  const memory = containers.flatMap((container) => listIn(container.memory));
  const devices = containers.flatMap(({ devices }) =>
    Object.entries(fieldsOf(devices)).map(([resource, list]) => `${listIn(list).length} of ${resource}`),
  );
  const { upcoming, quiet } = fieldsOf(pod);
  return [
    cpus.length === 0 ? 'no exclusive CPUs' : `CPUs ${cpus.map(textOf).join(' and ')}`,
    ...memory.map((block) => {
      const { type, bytes, nodes } = fieldsOf(block);
      return `${textOf(bytes)} bytes of ${textOf(type)} on nodes ${listIn(nodes).join(',')}`;
    }),
    ...devices,
    ...(quiet ? ['quiet'] : []),
    ...(upcoming ? [changeText(fieldsOf(upcoming))] : []),
  ].join(', ');
}

// A move that has begun has the grant where it goes.
function changeText({ cpus, move }: Readonly<Record<string, unknown>>): string {
  const hasBegun = move !== undefined && fieldsOf(move).target === null;
  return `to ${hasBegun ? 'leave' : 'have'} ${textOf(cpus)}`;
}

const grantText = (pod: unknown) => `${grantTitle(pod)}: ${holdingText(pod)}`;

type Names = Map<unknown, string>;

// Remembers names, since a release has only the uid.
function grantTexts(pods: unknown, names: Names, sign: string): string[] {
  return listIn(pods).map((pod) => {
    names.set(fieldsOf(pod).uid, grantTitle(pod));
    return `${sign} ${grantText(pod)}`;
  });
}

function changeTexts(record: Readonly<Record<string, unknown>>, names: Names): string[] {
  const endings = listIn(record.released).map((uid) => `- ${names.get(uid) ?? textOf(uid)}`);
  const isKnown = (pod: unknown) => names.has(fieldsOf(pod).uid);
  const pods = listIn(record.pods).flatMap((pod) => grantTexts([pod], names, isKnown(pod) ? '~' : '+'));
  const newMembers = Object.entries(REPLACED).filter(([member]) => record[member] !== undefined);
  const texts = [...endings, ...pods, ...newMembers.map(([, what]) => `new ${what}`)];
  return texts.length === 0 ? ['no change of grants or settings'] : texts;
}

function textsOf({ kind, record, bytes }: JournalLine, names: Names): string[] {
  const members = fieldsOf(record);
  switch (kind) {
    case 'head':
      return [
        members.follows
          ? `begins here, after a line with the checksum ${textOf(members.follows)}`
          : 'begins here',
      ];
    case 'state': {
      const pods = listIn(members.pods);
      const { kubelet, quiet } = members;
      const others = [
        ...(kubelet ? [`, ${countText(listIn(fieldsOf(kubelet).pods).length, 'pod')} of the kubelet's`] : []),
        ...(quiet
          ? [`, ${countText(listIn(fieldsOf(quiet).settings).length, 'changed setting')} of the kernel`]
          : []),
      ].join('');
      return [
        `the whole state: ${countText(pods.length, 'grant')}${others}`,
        ...grantTexts(pods, names, ' '),
      ];
    }
    case 'change':
      return changeTexts(members, names);
    case 'unfinished':
      return [`not finished, ${countText(bytes, 'byte')}: the next commit cuts it off`];
    case 'damaged':
      return [`DAMAGED, ${countText(bytes, 'byte')}: the checksum differs`];
    default:
      return ['of an unknown kind'];
  }
}

function rowsOf(line: JournalLine, names: Names): string[][] {
  const place = [String(line.offset), String(line.generation ?? ''), line.writtenAt ?? ''];
  return textsOf(line, names).map((text, i) => [...(i === 0 ? place : ['', '', '']), text].map(printable));
}

function summary({ version, bytes, generation, highest, copy, damage }: StateJournal): string[] {
  const format = version === null ? 'unknown format' : `format version ${version}`;
  return [
    `${format}, ${countText(bytes, 'byte')}, ${generation === null ? 'no valid generation' : `generation ${generation}`}`,
    `committed: ${highest === 0 ? 'unknown' : `up to generation ${highest}`}; copy: ${copy === null ? 'none that is valid' : `generation ${copy}`}`,
    ...(damage === null ? [] : [`damage: ${damage}`]),
  ].map(printable);
}

/** `last`: the number of lines to show, from the end of the file. */
export function journalText(journal: StateJournal, last: number, page: Page): string {
  const names: Names = new Map();
  const rows = journal.lines
    .map((line) => rowsOf(line, names))
    .slice(-last)
    .flat();
  const lines = [
    printable(journal.file),
    ...summary(journal),
    ...(rows.length === 0 ? [] : ['', ...table(COLUMNS, rows, page)]),
  ];
  return `${lines.join('\n')}\n`;
}
