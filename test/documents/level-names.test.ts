// needs: documents
// The names of enforcement levels: where code has them, and that each is explained.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from '@tsd/typescript';
import { describe, expect, it } from 'vitest';
import { ENFORCEMENT_LEVELS } from '../../lib/account/levels.js';
import { codeIn, ROOT, read, section } from '../support/documents.js';
import { makeStateDir } from '../support/state-dir.js';

const TABLE = 'lib/account/levels.ts';

/** Whether a type has names of levels only, and several: other types have some of the words too. */
function isLevel(type: ts.Type | undefined): boolean {
  const parts = type?.isUnion() ? type.types : [];
  const names = parts.flatMap((part) => (part.isStringLiteral() ? [part.value] : []));
  return names.length > 1 && names.every((name) => ENFORCEMENT_LEVELS.some((level) => level === name));
}

/** What a literal is compared with, or must be. */
function typeBeside(literal: ts.StringLiteralLike, checker: ts.TypeChecker): ts.Type | undefined {
  const { parent } = literal;
  if (ts.isCaseClause(parent)) return checker.getTypeAtLocation(parent.parent.parent.expression);
  if (!ts.isBinaryExpression(parent)) return checker.getContextualType(literal);
  return checker.getTypeAtLocation(parent.left === literal ? parent.right : parent.left);
}

/** The lines which decide by the name of a level. An option may have one as its value. */
function decisionsIn(file: ts.SourceFile, checker: ts.TypeChecker): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    ts.forEachChild(node, visit);
    if (!ts.isStringLiteralLike(node) || ts.isPropertyAssignment(node.parent)) return;
    if (!ENFORCEMENT_LEVELS.some((level) => level === node.text)) return;
    if (!isLevel(typeBeside(node, checker))) return;
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    found.push(file.text.split('\n')[line]!.trim());
  };
  visit(file);
  return found;
}

const PLANTED = [
  "if (level === 'partition') throw level;",
  "if ('cpuset' !== grant.enforcement) throw grant;",
  "switch (level) { case 'members': throw level; }",
  "takes('isolated');",
  "const weakest = (): EnforcementLevel => 'recorded';",
  "const strong: readonly EnforcementLevel[] = ['isolated'];",
];
const HARMLESS = [
  "if (pool === 'isolated') throw pool;",
  "export const options = { enforcement: 'members' } satisfies { enforcement: EnforcementLevel };",
];

function plantedFile(): string {
  const folder = makeStateDir();
  mkdirSync(folder);
  const path = join(folder, 'planted.ts');
  const head = `import type { EnforcementLevel } from '${ROOT}${TABLE}';
declare const level: EnforcementLevel, grant: { enforcement: EnforcementLevel }, pool: 'isolated' | 'ordinary';
declare function takes(level: EnforcementLevel): void;`;
  writeFileSync(path, [head, ...HARMLESS, ...PLANTED].join('\n'));
  return path;
}

it('only the table of levels decides by their names', () => {
  const folders = ['lib', ...readdirSync(`${ROOT}packages`).map((name) => `packages/${name}/lib`)];
  const files = folders.flatMap((folder) =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && `${folder}/${name}` !== TABLE)
      .map((name) => `${ROOT}${folder}/${name}`),
  );
  const planted = plantedFile();
  const program = ts.createProgram([planted, ...files], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  });
  const decisions = [planted, ...files].flatMap((path) =>
    decisionsIn(program.getSourceFile(path)!, program.getTypeChecker()).map(
      (line) => `${path === planted ? 'planted' : relative(ROOT, path)}: ${line}`,
    ),
  );
  expect(decisions).toEqual(PLANTED.map((line) => `planted: ${line}`));
});

describe('every enforcement level is explained', () => {
  it('in docs/enforcement.md, from weak to strong', () => {
    const rows = section(read('docs/enforcement.md'), '## Levels').matchAll(/^\| (`\w+`) \|/gm);
    expect([...rows].flatMap(([, name]) => codeIn(name!))).toEqual(ENFORCEMENT_LEVELS);
  });

  it('in the reference', () => {
    const [, ...words] = section(read('docs/reference/api.md'), '### EnforcementLevel').split('\n\n');
    expect(codeIn(words.join('\n\n'))).toEqual(expect.arrayContaining([...ENFORCEMENT_LEVELS]));
  });
});
