// needs: documents
// The types of a library that uses numalign: with `declaration: true`, TypeScript can write whatever
// the library makes of an export.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from '@tsd/typescript';
import { expect, it, onTestFinished } from 'vitest';
import { ROOT } from '../support/documents.js';

const ENTRIES = ['', '/topology', '/kubelet', '/diagnostics', '/cluster', '/tools'];
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  strict: true,
  declaration: true,
  // As if the package were installed, not linked.
  preserveSymlinks: true,
};

/** A project that has the package as it is built. */
function makeProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-declarations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  mkdirSync(join(folder, 'node_modules'));
  const link = (name: string, target: string) => symlinkSync(target, join(folder, 'node_modules', name));
  link('numalign', ROOT);
  for (const name of ['@types', 'undici-types']) link(name, join(ROOT, 'node_modules', name));
  return folder;
}

function compiled(folder: string, text: string): ts.Program {
  const file = join(folder, 'main.ts');
  writeFileSync(file, text);
  return ts.createProgram([file], OPTIONS);
}

/** What a library may make of a type: a copy of an object, and what each member is. */
function usesOf(entry: string, exported: ts.Symbol, checker: ts.TypeChecker): string[] {
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  if (type.aliasTypeArguments?.some(({ flags }) => flags & ts.TypeFlags.TypeParameter)) return [];
  const variants = type.isUnion() ? type.types : [type];
  if (!variants.every(({ flags }) => flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))) return [];
  const members = checker.getPropertiesOfType(type).filter(isReadable);
  const read = members.map(({ name }) => `of[${JSON.stringify(name)}]`);
  const parameter = `of: ${entry}.${exported.name}`;
  return [`(${parameter}) => ({ ...of })`, `(${parameter}) => [${read}] as const`];
}

function isReadable({ name, declarations = [] }: ts.Symbol): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return !/^__|#/.test(name) && !declarations.some((each) => ts.getCombinedModifierFlags(each) & hidden);
}

/** With the lines that they are about. */
const problemsOf = (found: readonly ts.Diagnostic[]) =>
  found.map(({ messageText, file, start }) => {
    const line = file!.text.slice(0, start).split('\n').length;
    const at = `${file!.fileName}:${line}: ${file!.text.split('\n')[line - 1]}`;
    return `${at}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });

/** What a type of the package leaves unchecked: each `any`, and a member without a type. */
function uncheckedIn(path: string): string[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const isPrivate = (node: ts.PropertyDeclaration) =>
    ts.isPrivateIdentifier(node.name) || (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private) !== 0;
  const visit = (node: ts.Node) => {
    const isUntyped =
      (ts.isPropertySignature(node) && !node.type) ||
      (ts.isPropertyDeclaration(node) && !node.type && !node.initializer && !isPrivate(node));
    if (node.kind === ts.SyntaxKind.AnyKeyword || isUntyped) found.push(node.parent.getText());
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

it('have no `any`', () => {
  const folders = ['dist', 'packages/metrics/dist'].map((name) => join(ROOT, name));
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.d.ts'))
      .map((name) => join(folder, name)),
  );
  expect(files.length).toBeGreaterThan(ENTRIES.length);
  expect(files.flatMap(uncheckedIn)).toEqual([]);
});

it('name what other packages have by their entries only', () => {
  const packages = readdirSync(join(ROOT, 'packages')).map((name) => join(ROOT, 'packages', name, 'dist'));
  const files = packages.filter(existsSync).flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.d.ts'))
      .map((name) => join(folder, name)),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => readFileSync(file, 'utf8').includes('/dist/types/'))).toEqual([]);
});

it('can be written by TypeScript, whatever a library makes of them', () => {
  const folder = makeProject();
  const imports = ENTRIES.map((entry, at) => `import * as entry${at} from 'numalign${entry}';\n`).join('');
  const program = compiled(folder, imports);
  const checker = program.getTypeChecker();
  const modules = program
    .getSourceFile(join(folder, 'main.ts'))!
    .statements.filter(ts.isImportDeclaration)
    .map(({ moduleSpecifier }) => checker.getSymbolAtLocation(moduleSpecifier)!);
  const uses = modules.flatMap((module, at) => [
    `{ ...entry${at} }`,
    ...checker.getExportsOfModule(module).flatMap((each) => usesOf(`entry${at}`, each, checker)),
  ]);
  expect(uses.length).toBeGreaterThan(250);

  const exports = uses.map((use, at) => `export const use${at} = ${use};\n`).join('');
  const library = compiled(folder, imports + exports);
  const isOurs = ({ fileName }: ts.SourceFile) => !/node_modules\/(?!numalign\/dist)/.test(fileName);
  const files = library
    .getSourceFiles()
    .filter(({ fileName }) => fileName.startsWith(folder))
    .filter(isOurs);
  expect(files.length).toBeGreaterThan(ENTRIES.length);
  expect(files.flatMap((file) => problemsOf(library.getSemanticDiagnostics(file)))).toEqual([]);
  expect(problemsOf(library.getDeclarationDiagnostics())).toEqual([]);
});
