// The facts in the details of each error, by its code: what lib/base/codes says, for the reference and
// for tests, where each error that is made is compared with it.
import { join } from 'node:path';
import ts from '@tsd/typescript';
import { root } from './steps.mjs';

const CODES = join(root, 'lib/base/codes');
// What lib/admission/admission-error.ts adds. To read all that its types name takes seconds.
const ADDED = join(CODES, 'added.ts');
const ADDED_TEXT = `import './error-details.js';
declare module './error-details.js' {
  interface ErrorDetails { explanation?: object; holders?: object; repacking?: object }
}`;

/**
 * By code, and '' for the facts that any error may have.
 * @returns {Record<string, Record<string, { type: string, isOptional: boolean, kinds: string[] }>>}
 */
export function errorFacts() {
  const program = programOfCodes();
  const checker = program.getTypeChecker();
  const declared = (file, name) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(CODES, file)));
    const symbol = checker.getExportsOfModule(module).find((each) => each.name === name);
    return checker.getDeclaredTypeOfSymbol(symbol);
  };
  const factsOf = (type) =>
    Object.fromEntries(type.getProperties().map((each) => [each.name, factOf(each, checker)]));
  const onlyOfRejections = declared('admission-reasons.ts', 'RejectionFact').types;
  const common = factsOf(declared('error-details.ts', 'ErrorDetails'));
  for (const { value } of onlyOfRejections) delete common[value];
  const codes = declared('error-codes.ts', 'ErrorCodes').getProperties();
  return {
    '': common,
    ...Object.fromEntries(codes.map((each) => [each.name, factsOf(checker.getTypeOfSymbol(each))])),
  };
}

function programOfCodes() {
  const options = {
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es5.d.ts'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
  };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.readFile = (path) => (path === ADDED ? ADDED_TEXT : readFile(path));
  host.fileExists = (path) => path === ADDED || fileExists(path);
  return ts.createProgram([join(CODES, 'error-codes.ts'), ADDED], options, host);
}

const KINDS = [
  [ts.TypeFlags.StringLike, 'string'],
  [ts.TypeFlags.NumberLike, 'number'],
  [ts.TypeFlags.BooleanLike, 'boolean'],
  [ts.TypeFlags.Null, 'null'],
  [ts.TypeFlags.Undefined, 'undefined'],
  [ts.TypeFlags.Object | ts.TypeFlags.NonPrimitive | ts.TypeFlags.Intersection, 'object'],
];

function factOf(symbol, checker) {
  const type = checker.getTypeOfSymbol(symbol);
  const parts = type.isUnion() ? type.types : [type];
  const kinds = parts.map(({ flags }) => KINDS.find(([flag]) => flags & flag)?.[1] ?? 'any');
  const isOptional = (symbol.flags & ts.SymbolFlags.Optional) !== 0;
  const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseSingleQuotesForStringLiteralType;
  return {
    type: checker.typeToString(type, undefined, flags).replace(isOptional ? / \| undefined$/ : '', ''),
    isOptional,
    kinds: [...new Set(kinds)],
  };
}

// In the test build, at the end of the constructor of all errors. A decision's refusal has the facts of
// a rejection only when it has become one.
function checkFacts(table, code, facts, isRefusal) {
  const known = table[code];
  if (!known) throw new TypeError(`an error has the code ${code}, which ErrorCodes does not have`);
  const flaws = Object.entries(facts).flatMap(([name, value]) => {
    const fact = known[name] ?? table[''][name];
    if (!fact) return [`${name}, which its type does not have`];
    const kind = value === null ? 'null' : typeof value;
    const found = kind === 'function' ? 'object' : kind;
    return fact.kinds.includes('any') || fact.kinds.includes(found) ? [] : [`${name} as ${kind}`];
  });
  for (const [name, { isOptional }] of Object.entries(known))
    if (!isOptional && !isRefusal && !(name in facts)) flaws.push(`no ${name}`);
  if (flaws.length > 0) throw new TypeError(`the details of ${code} have ${flaws.join(', and ')}`);
}

/** For the test build: each error is compared with the table as it is made. */
export const comparingErrors = {
  name: 'comparing-errors',
  transform(code, id) {
    if (!id.endsWith('/lib/base/errors.ts')) return undefined;
    const place = /this\.details = Object\.freeze\(facts\)[^;]*;/;
    if (!place.test(code)) throw new Error('lib/base/errors.ts does not freeze its facts');
    const check = 'checkFacts(FACTS, code, facts, !/^(Numalign|Admission)Error$/.test(new.target.name));';
    const table = `const FACTS = ${JSON.stringify(errorFacts())};\n`;
    return `${code.replace(place, (text) => `${text} ${check}`)}\n${checkFacts}\n${table}`;
  },
};
