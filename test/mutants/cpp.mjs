// Mutants of the C++ core, found in clang's syntax tree (JSON): in a copy of native/, judged by the
// core's own tests. Follows what StrykerJS does to TypeScript: one small change at a time.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, root, say } from '../../scripts/steps.mjs';
import { isSampled } from './sample.mjs';

const CLANG = 'clang-14';
const WORK = join(root, '.cache/mutants/core');
const BUILD = join(WORK, 'build');
// The time of the tests without a mutant; at least this long.
const TIMEOUT_FACTOR = 10;
const SHORTEST_TIMEOUT_MS = 20_000;

const OPERATORS = {
  ...{ '<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<'], '==': ['!='], '!=': ['=='] },
  ...{ '&&': ['||'], '||': ['&&'], '+': ['-'], '-': ['+'], '*': ['/'], '/': ['*'], '%': ['*'] },
  ...{ '&': ['|'], '|': ['&'], '^': ['|'], '<<': ['>>'], '>>': ['<<'] },
  ...{ '+=': ['-='], '-=': ['+='], '|=': ['&='], '&=': ['|='], '<<=': ['>>='], '>>=': ['<<='] },
  ...{ '++': ['--'], '--': ['++'] },
};
const STATEMENTS = [
  ...['CallExpr', 'CXXMemberCallExpr', 'CXXOperatorCallExpr', 'ExprWithCleanups', 'CompoundAssignOperator'],
  ...['BinaryOperator', 'UnaryOperator', 'BreakStmt', 'ContinueStmt'],
];

/** The trees of a file, which clang prints one after the other. */
function treesOf(file) {
  const dump = ['-fsyntax-only', '-Xclang', '-ast-dump=json', '-Xclang', '-ast-dump-filter=numalign'];
  const command = [
    '-x',
    'c++',
    '-std=c++20',
    '-Wno-everything',
    '-I',
    join(root, 'native'),
    ...dump,
    join(root, file),
  ];
  const { status, stdout, stderr, error } = spawnSync(CLANG, command, {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  if (error) fail(`${CLANG} is missing (apt-get install ${CLANG})`);
  if (status !== 0) fail(`${CLANG} cannot read ${file}:\n${stderr}`);
  return stdout
    .split(/^(?=\{$)/m)
    .filter((text) => text.startsWith('{'))
    .map((text) => JSON.parse(text));
}

// What comes of a macro or stands in another file is left alone.
const isHere = ({ offset, includedFrom, expansionLoc } = {}) =>
  offset !== undefined && !includedFrom && !expansionLoc;

/** [start, end) of a node in its file; undefined where that is not plain. */
function spanOf({ range: { begin, end } = {} }) {
  return isHere(begin) && isHere(end) ? [begin.offset, end.offset + end.tokLen] : undefined;
}

/** Every small change that can be made in a file: { start, end, replacement }. */
function mutantsOf(file, source) {
  const found = new Map();
  const add = ([start, end], replacement) =>
    found.set(`${start}-${end} ${replacement}`, { start, end, replacement });
  const operatorAt = (start, length, text) => {
    if (source.slice(start, start + length) !== text) return;
    for (const other of OPERATORS[text] ?? []) add([start, start + length], other);
  };
  // The text between two operands.
  const between = (left, right, text) => {
    const [a, b] = [spanOf(left), spanOf(right)];
    const at = a && b ? source.slice(a[1], b[0]).indexOf(text) : -1;
    if (at >= 0) operatorAt(a[1] + at, text.length, text);
  };
  const mutate = (node, parent) => {
    const { kind, inner = [], opcode, value } = node;
    const span = spanOf(node);
    if (kind === 'BinaryOperator' || kind === 'CompoundAssignOperator') between(inner[0], inner[1], opcode);
    if (kind === 'CXXOperatorCallExpr' && inner.length === 3) {
      const callee = spanOf(inner[0]);
      if (callee) operatorAt(callee[0], callee[1] - callee[0], source.slice(...callee));
    }
    if (!span) return;
    const text = source.slice(...span);
    if (kind === 'UnaryOperator' && opcode === '!' && text[0] === '!') add([span[0], span[0] + 1], '');
    if (kind === 'UnaryOperator' && OPERATORS[opcode] && opcode.length === 2)
      operatorAt(node.isPostfix ? span[1] - 2 : span[0], 2, opcode);
    if (kind === 'IntegerLiteral' && /^\d+$/.test(text)) add(span, String(BigInt(value) + 1n));
    if (kind === 'CXXBoolLiteralExpr') add(span, String(!value));
    if (['IfStmt', 'WhileStmt', 'ConditionalOperator'].includes(kind) && !node.hasInit && !node.hasVar) {
      const condition = inner[0] && spanOf(inner[0]);
      if (condition) add(condition, `!(${source.slice(...condition)})`);
    }
    if (parent?.kind === 'CompoundStmt' && STATEMENTS.includes(kind)) add(span, '');
  };
  const walk = (node, parent, isInBody) => {
    if (isInBody && node.kind) mutate(node, parent);
    for (const child of node.inner ?? []) walk(child, node, isInBody || node.kind === 'CompoundStmt');
  };
  for (const tree of treesOf(file)) walk(tree, undefined, false);
  return [...found.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}

const run = (command, args, options) => spawnSync(command, args, { cwd: WORK, encoding: 'utf8', ...options });
const compile = () => run('cmake', ['--build', BUILD, '--target', 'core_test', '--parallel', '2']);
const test = (timeout) =>
  run(join(BUILD, 'core_test'), ['--gtest_brief=1', '--gtest_fail_fast'], { timeout });

function prepare() {
  rmSync(WORK, { recursive: true, force: true });
  cpSync(join(root, 'native'), join(WORK, 'native'), { recursive: true });
  // The optimizer's time is not worth it, but for tests that compute much.
  const options = ['-DCMAKE_BUILD_TYPE=Mutants', '-DCMAKE_CXX_FLAGS_MUTANTS=-O1'];
  const configured = run('cmake', ['-S', 'native', '-B', BUILD, ...options]);
  const compiled = configured.status === 0 ? compile() : configured;
  if (compiled.status !== 0)
    fail(`the core's tests could not be built:\n${compiled.stdout}${compiled.stderr}`);
  const start = Date.now();
  const tested = test(600_000);
  if (tested.status !== 0) fail(`the core's tests fail without any mutant:\n${tested.stdout}`);
  return Math.max(SHORTEST_TIMEOUT_MS, TIMEOUT_FACTOR * (Date.now() - start));
}

// 'killed', 'survived', or 'invalid' where it does not compile.
function judge(file, source, { start, end, replacement }, timeout) {
  const path = join(WORK, file);
  writeFileSync(path, source.slice(0, start) + replacement + source.slice(end), 'latin1');
  try {
    if (compile().status !== 0) return 'invalid';
    return test(timeout).status === 0 ? 'survived' : 'killed';
  } finally {
    writeFileSync(path, source, 'latin1');
  }
}

/** Judges the mutants of one folder or file of native/core. */
export function judgeCpp(path, sample) {
  const isFolder = statSync(join(root, path)).isDirectory();
  const files = isFolder ? readdirSync(join(root, path)).map((name) => `${path}/${name}`) : [path];
  const timeout = prepare();
  const result = { all: 0, judged: 0, survivors: [] };
  for (const file of files.filter((name) => /\.(cc|h)$/.test(name)).sort()) {
    // Offsets count bytes.
    const source = readFileSync(join(root, file), 'latin1');
    const mutants = mutantsOf(file, source);
    result.all += mutants.length;
    const chosen = mutants.filter(({ start, end, replacement }) =>
      isSampled(`${file}:${start}-${end} ${replacement}`, sample),
    );
    say(`${file}: ${chosen.length} of ${mutants.length} mutants`);
    for (const mutant of chosen) {
      const verdict = judge(file, source, mutant, timeout);
      if (verdict === 'invalid') continue;
      result.judged++;
      if (verdict === 'killed') continue;
      const lines = source.slice(0, mutant.start).split('\n');
      const at = `${file}:${lines.length}:${lines.at(-1).length + 1}`;
      result.survivors.push({
        at,
        before: source.slice(mutant.start, mutant.end),
        after: mutant.replacement,
      });
    }
  }
  return result;
}
