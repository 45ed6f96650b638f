// Chart: renders the Helm chart as `helm template` does, as far as the chart uses Helm (see
// template.mjs for templates). Values are merged like Helm's, and checked by values.schema.json.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { flawsOf } from './schema.mjs';
import { isTrue, Templates } from './template.mjs';

export const CHART = fileURLToPath(new URL('../../packages/kubernetes/deploy/chart/', import.meta.url));

const indent = (count, text) => text.replaceAll(/^/gm, ' '.repeat(count));

/** Of Go, of Sprig and of Helm, with their order of arguments. */
const FUNCTIONS = {
  include(name, dot) {
    return this.include(name, dot);
  },
  required(message, value) {
    if (value === undefined || value === null || value === '') throw new Error(message);
    return value;
  },
  fail(message) {
    throw new Error(message);
  },
  and: (...values) => values.find((each) => !isTrue(each)) ?? values.at(-1),
  or: (...values) => values.find(isTrue) ?? values.at(-1),
  not: (value) => !isTrue(value),
  eq: (a, ...others) => others.includes(a),
  ne: (a, b) => a !== b,
  default: (otherwise, value) => (isTrue(value) ? value : otherwise),
  quote: (value) => JSON.stringify(String(value)),
  toString: (value) => String(value),
  toYaml: (value) => stringify(value, { lineWidth: 0, sortMapEntries: true }).trimEnd(),
  indent,
  nindent: (count, text) => `\n${indent(count, text)}`,
  printf: (format, ...values) => {
    const left = [...values];
    return format.replaceAll(/%[sdv]/g, () => String(left.shift()));
  },
  trunc: (length, text) => text.slice(0, length),
  trimSuffix: (suffix, text) => (text.endsWith(suffix) ? text.slice(0, -suffix.length) : text),
  contains: (part, text) => text.includes(part),
  replace: (from, to, text) => text.replaceAll(from, to),
  list: (...values) => values,
  dict: (...pairs) =>
    Object.fromEntries(pairs.flatMap((key, i) => (i % 2 === 0 ? [[key, pairs[i + 1]]] : []))),
};

const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** As Helm: maps are merged, null removes a default, all else is replaced. */
export function mergeValues(defaults, given) {
  const merged = { ...defaults };
  for (const [key, value] of Object.entries(given ?? {})) {
    if (value === null) delete merged[key];
    else merged[key] = isMap(value) && isMap(merged[key]) ? mergeValues(merged[key], value) : value;
  }
  return merged;
}

const read = (...path) => readFileSync(join(CHART, ...path), 'utf8');

/** Chart.yaml with the names that templates use. */
function chartFacts() {
  const { name, version, appVersion } = parse(read('Chart.yaml'));
  return { Name: name, Version: version, AppVersion: appVersion };
}

/**
 * The manifests, as `helm template RELEASE . --namespace NAMESPACE --include-crds`.
 *
 * @throws Error if the values do not match the schema, or a template fails
 */
export function renderChart({ values = {}, release = 'numalign-node', namespace = 'numalign' } = {}) {
  const merged = mergeValues(parse(read('values.yaml')), values);
  const flaws = flawsOf(merged, JSON.parse(read('values.schema.json')));
  if (flaws.length > 0) throw new Error(`values.yaml: ${flaws.join('; ')}`);
  const dot = {
    Values: merged,
    Chart: chartFacts(),
    Release: { Name: release, Namespace: namespace, Service: 'Helm' },
  };
  const templates = new Templates(FUNCTIONS);
  const files = readdirSync(join(CHART, 'templates')).toSorted();
  const rendered = files.map((name) => [name, templates.add(read('templates', name))]);
  const crds = readdirSync(join(CHART, 'crds')).map((name) => [`crds/${name}`, read('crds', name)]);
  const texts = rendered
    .filter(([name]) => name.endsWith('.yaml'))
    .map(([name, render]) => [name, render(dot)]);
  return [...crds, ...texts].flatMap(([name, text]) => documentsOf(name, text));
}

function documentsOf(name, text) {
  const documents = parseAllDocuments(text);
  const flaws = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  if (flaws.length > 0) throw new Error(`${name}: ${flaws[0].message}\n${text}`);
  return documents.map((document) => document.toJS()).filter((each) => each !== null);
}
