// Numbers for people.

const UNITS = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [0, 'ns'],
];

/** Three digits. */
export const number = (value) => Number(value.toPrecision(3)).toLocaleString('en');

export function duration(ns) {
  if (!Number.isFinite(ns)) return '-';
  const [unit, name] = UNITS.find(([least]) => Math.abs(ns) >= least);
  return `${number(ns / (unit || 1))} ${name}`;
}

/** A part as a percentage. */
export const percent = (part) => `${number(100 * part)} %`;
