// A trace: a CSV file whose first line names its columns.
import { readFileSync } from 'node:fs';
import { parseQuantity, wholeValue } from '../../dist-test/lib/input/values/quantity.js';

const COLUMNS = ['cpu', 'memory', 'gpu', 'arrival', 'duration'];
const TIMES = ['arrival', 'duration'];

function fail(message, value, valid) {
  throw Object.assign(new Error(`${message}; valid: ${valid}`), { code: 'ERR_TRACE', value, valid });
}

function columnsOf(head, path) {
  const columns = head.split(',').map((name) => name.trim());
  const columnNames = COLUMNS.join(', ');
  const stray = columns.find((name, i) => !COLUMNS.includes(name) || columns.indexOf(name) < i);
  if (stray !== undefined) fail(`${path}: column "${stray}"`, stray, `${columnNames}, each at most once`);
  const has = (name) => columns.includes(name);
  if (!has('cpu')) fail(`${path}: no column cpu`, head, `a first line with some of ${columnNames}`);
  const times = TIMES.filter(has);
  if (times.length === 1) fail(`${path}: only ${times}`, head, `both ${TIMES.join(' and ')}, or neither`);
  return columns;
}

function seconds(text, where) {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return value >= 0 && value < Number.POSITIVE_INFINITY
    ? value
    : fail(`${where}: "${text}"`, text, 'seconds, 0 or more');
}

function requestOf(line, columns, where) {
  const cells = line.split(',');
  if (cells.length !== columns.length)
    fail(`${where}: ${cells.length} columns`, line, `${columns.length}, as the first line has`);
  const textOf = (name) => cells[columns.indexOf(name)]?.trim();
  const amount = (name) => wholeValue(parseQuantity(textOf(name) ?? '0', `${where}: ${name}`));
  const request = { cpu: amount('cpu'), memory: amount('memory'), gpu: amount('gpu') };
  const negative = Object.keys(request).find((name) => request[name] < 0);
  if (negative) fail(`${where}: ${negative} ${request[negative]}`, line, '0 or more');
  if (request.cpu === 0) fail(`${where}: cpu ${textOf('cpu')}`, line, 'above 0');
  if (!columns.includes('arrival')) return request;
  const [time, duration] = TIMES.map((name) => seconds(textOf(name), `${where}: ${name}`));
  return { ...request, time, duration };
}

/**
 * The requests of a trace: Kubernetes quantities, with CPUs rounded up to whole ones; `time` and
 * `duration` in seconds if the trace has them, sorted by time.
 * @throws ERR_TRACE, ERR_INVALID_QUANTITY
 */
export function readTrace(path) {
  const lines = readFileSync(path, 'utf8').split(/\r?\n/);
  const columns = columnsOf(lines[0], path);
  const requests = lines.flatMap((line, i) =>
    i === 0 || line.trim() === '' ? [] : [requestOf(line, columns, `${path}:${i + 1}`)],
  );
  if (requests.length === 0) fail(`${path}: no requests`, path, 'a line for each below the first');
  return columns.includes('arrival') ? requests.sort((a, b) => a.time - b.time) : requests;
}
