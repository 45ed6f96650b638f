// The syntax of names and labels that the API server holds objects to.
import { type Fields, type Finding, fieldsOf, mustBe } from './findings.js';

interface Syntax {
  readonly form: RegExp;
  readonly longest: number;
  /** In words. */
  readonly valid: string;
}

/** The name of most objects. */
const SUBDOMAIN: Syntax = {
  form: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  longest: 253,
  valid: 'at most 253 lower-case letters, digits, inner hyphens and dots between them',
};
const LABEL: Syntax = {
  form: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  longest: 63,
  valid: 'at most 63 lower-case letters, digits and inner hyphens',
};
// Its pods have 11 more characters.
const CRON_JOB: Syntax = { ...SUBDOMAIN, longest: 52, valid: SUBDOMAIN.valid.replace('253', '52') };
const WORD = /^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;
const KEY = 'keyed by at most 63 letters, digits and inner -, _ and ., optionally after a domain and /';
const VALUE =
  'a text of at most 63 letters, digits and inner -, _ and ., in quotation marks if YAML reads another';
const TEXT = 'a text, in quotation marks if YAML reads another';

const CODE = 'ERR_INVALID_POD';
const fits = (value: unknown, { form, longest }: Syntax) =>
  typeof value === 'string' && value.length <= longest && form.test(value);

function isKey(key: string): boolean {
  const slash = key.indexOf('/');
  return slash < 0 ? WORD.test(key) : WORD.test(key.slice(slash + 1)) && fits(key.slice(0, slash), SUBDOMAIN);
}

/** What is wrong with the names, labels and annotations of an object of this kind. */
export function metadataFindings(metadata: Fields, field: string, kind: unknown): Finding[] {
  const named = (name: string, syntax: Syntax): Finding[] => {
    const value = metadata[name];
    const isRight = value === undefined || value === null || fits(value, syntax);
    return isRight ? [] : [mustBe(CODE, `${field}.${name}`, value, syntax.valid)];
  };
  const entries = (
    name: string,
    keyOf: (key: string) => string,
    isValue: (value: unknown) => boolean,
    valid: string,
  ) =>
    Object.entries(fieldsOf(metadata[name])).flatMap(([key, value]) => [
      ...(isKey(keyOf(key))
        ? []
        : [{ ...mustBe(CODE, `${field}.${name}`, key, KEY), field: `${field}.${name}.${key}` }]),
      ...(isValue(value) ? [] : [mustBe(CODE, `${field}.${name}.${key}`, value, valid)]),
    ]);
  const isText = (value: unknown) => typeof value === 'string';
  const isLabel = (value: unknown) => isText(value) && (value === '' || WORD.test(value as string));
  return [
    ...named('name', kind === 'CronJob' ? CRON_JOB : SUBDOMAIN),
    ...named('namespace', LABEL),
    ...entries('labels', (key) => key, isLabel, VALUE),
    // Keys of annotations may have capital letters anywhere.
    ...entries('annotations', (key) => key.toLowerCase(), isText, TEXT),
  ];
}
