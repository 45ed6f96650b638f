// The other files of a state folder in lines. Pure.
import { besideText, cpusText, since } from '@numalign/page/words';
import type { KeptFiles, StateStatus } from 'numalign/diagnostics';
import { printable } from '../../terminal/text.js';

export function lapsedText(lapsed: StateStatus['lapsed']): string {
  const texts = lapsed.map(({ uid, name, cpus, memory, devices }) => {
    const otherText = besideText(memory, devices);
    return `${name === uid ? uid : `${name} (${uid})`}: ${cpusText(cpus)}${otherText === '' ? '' : `, ${otherText}`}`;
  });
  return printable(texts.join('; '));
}

// For older files a number is enough.
const SHOWN_FILES = 3;

export function fileLines(title: string, files: readonly string[]): string[] {
  if (files.length === 0) return [];
  const more = files.length - SHOWN_FILES;
  const lines = files.slice(0, SHOWN_FILES).map((file) => `  ${printable(file)}`);
  return ['', title, ...lines, ...(more > 0 ? [`  and ${more} more`] : [])];
}

export function archiveText({ file, writtenAt, lapsed }: KeptFiles['archives'][number]): string {
  const time = writtenAt === null ? 'not readable' : since(writtenAt);
  return `${file}, ${time}${lapsed.length === 0 ? '' : `: ${lapsedText(lapsed)}`}`;
}
