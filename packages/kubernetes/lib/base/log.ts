// Log: messages for the node's operator, with fields for machines.

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['text', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** What numalign does for a container. */
export type Decision = 'admit' | 'refuse' | 'update' | 'release' | 'repair';

/** What a message is about, under the same names everywhere; other fields are free. */
export interface LogFields {
  /** NAMESPACE/NAME. */
  readonly pod?: string | undefined;
  /** Its name in the pod. */
  readonly container?: string | undefined;
  readonly decision?: Decision | undefined;
  /** How long it took, in milliseconds. */
  readonly ms?: number | undefined;
  /** The literal code of an error. */
  readonly code?: string | undefined;
  readonly [field: string]: unknown;
}

/** One line per message. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

export interface LogWriterOptions {
  readonly format: LogFormat;
  /** Messages below it are left out. */
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

/** A log of lines with their time, as text for people (the fields as in logfmt) or as JSON. */
export function logWriter({ format, level, write, now = () => new Date() }: LogWriterOptions): Log {
  const least = LOG_LEVELS.indexOf(level);
  const lineOf = format === 'json' ? jsonLine : textLine;
  return (of, message, fields = {}) => {
    if (LOG_LEVELS.indexOf(of) >= least) write(`${lineOf(now().toISOString(), of, message, fields)}\n`);
  };
}

const LEVEL_WIDTH = 5;

function textLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => ` ${name}=${textOf(value)}`);
  return `${time} ${level.padEnd(LEVEL_WIDTH)} ${printable(message)}${pairs.join('')}`;
}

function textOf(value: unknown): string {
  const plain = plainOf(value);
  const text =
    typeof plain === 'string' ? plain : String(JSON.stringify(plain, (_, inner) => plainOf(inner)));
  return printable(/[\s"=]/.test(text) ? JSON.stringify(text) : text);
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const own = { time, level, message };
  // Its own names come first, and a field cannot replace them.
  return JSON.stringify({ ...own, ...fields, ...own }, (_, value) => plainOf(value));
}

/** A value as JSON has it. */
function plainOf(value: unknown): unknown {
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? String(value) : value;
}

/** The text on one line, without control characters of whoever wrote it. */
export const printable = (text: string): string =>
  text.replace(/\p{C}/gu, (character) => (character === '\n' ? ' ' : '\ufffd'));
