// kubelet and kube-apiserver, built from Debian's source package with Debian's Go, since there are
// no packages of them. Built once for all clones; nothing is installed.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../../scripts/cache-folder.mjs';
import { debianMirror, run, sourceOptions, unpackPackages } from '../../../../test/vm/debian-packages.mjs';

export const KUBERNETES_VERSION = '1.20.2';
// A change of this rebuilds the programs.
const RECIPE = `${KUBERNETES_VERSION}, mended 1`;
const SUITE = 'bookworm';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const GO = ['golang-1.19-go', 'golang-1.19-src'];
const REFLECT2 = 'golang-github-modern-go-reflect2-dev';
const MODULE = 'k8s.io/kubernetes';
// Half of the work, and of no use here.
const TAGS = 'providerless,dockerless';

const cache = () => cacheFolder('numalign-kubernetes');
const stampOf = (program) => `${program}.recipe`;

function isBuilt(program) {
  const stamp = stampOf(program);
  return existsSync(program) && existsSync(stamp) && readFileSync(stamp, 'utf8') === RECIPE;
}

// Both CPUs for minutes: others go first.
function go(environment, cwd, args) {
  run('nice', ['-n', '10', 'go', ...args], { cwd, env: environment });
}

function replaceIn(path, from, to) {
  const text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${path} is not as expected: there is no ${from}`);
  writeFileSync(path, text.replaceAll(from, to));
}

/**
 * The kubelet's dialers of plugins send the path of the socket as :authority, which HTTP/2 servers of
 * Node refuse (Kubernetes' change 112597).
 */
function mendAuthority(source) {
  const dialers = [
    'pkg/kubelet/cm/devicemanager/endpoint.go',
    'pkg/kubelet/pluginmanager/operationexecutor/operation_generator.go',
  ];
  const dial = 'grpc.DialContext(ctx, unixSocketPath, ';
  for (const file of dialers) replaceIn(join(source, file), dial, `${dial}grpc.WithAuthority("localhost"), `);
}

/** The one in the source does not fit Go 1.18 and newer: JSON of a map ends in a SIGSEGV. */
function mendReflect2(source, build, flags) {
  const unpacked = join(build, 'reflect2');
  unpackPackages([REFLECT2], unpacked, flags);
  const vendored = join(source, 'vendor/github.com/modern-go/reflect2');
  rmSync(vendored, { recursive: true });
  cpSync(join(unpacked, 'usr/share/gocode/src/github.com/modern-go/reflect2'), vendored, {
    recursive: true,
  });
}

function unpackSource(build, flags) {
  run('apt-get', [...flags, '-q', 'source', '--download-only', 'kubernetes'], { cwd: build });
  const description = readdirSync(build).find((name) => name.endsWith('.dsc'));
  const source = join(build, 'gopath/src', MODULE);
  mkdirSync(join(source, '..'), { recursive: true });
  run('dpkg-source', ['--no-check', '-q', '-x', description, source], { cwd: build });
  return source;
}

function unpackGo(build, flags) {
  const root = join(build, 'go');
  unpackPackages(GO, root, flags);
  return join(root, 'usr/lib/go-1.19');
}

/** What is needed to build: the source, mended, and the environment of its Go. */
function prepareSource(build) {
  const mirror = debianMirror();
  const sources = ['deb', 'deb-src'].map(
    (type) => `${type} [signed-by=${KEYRING}] ${mirror} ${SUITE} main\n`,
  );
  const flags = sourceOptions(join(build, 'apt'), 'debian', sources.join(''));
  const goRoot = unpackGo(build, flags);
  const source = unpackSource(build, flags);
  mendAuthority(source);
  mendReflect2(source, build, flags);
  mkdirSync(join(build, 'tmp'));
  const environment = {
    ...process.env,
    ...{ GOROOT: goRoot, GOPATH: join(build, 'gopath'), GOCACHE: join(build, 'gocache') },
    ...{ GOTMPDIR: join(build, 'tmp'), GOENV: 'off', GO111MODULE: 'off', GOFLAGS: '', CGO_ENABLED: '0' },
    PATH: `${join(goRoot, 'bin')}:${process.env.PATH}`,
  };
  return { source, environment };
}

function compile({ source, environment }, name, to) {
  const versions = ['component-base/version', 'client-go/pkg/version'].flatMap((where) => {
    const values = { gitVersion: `v${KUBERNETES_VERSION}`, gitMajor: '1', gitMinor: '20' };
    const path = `${MODULE}/vendor/k8s.io/${where}`;
    return Object.entries(values).map(([variable, value]) => `-X ${path}.${variable}=${value}`);
  });
  const ldflags = ['-s -w', ...versions].join(' ');
  const args = ['build', '-trimpath', '-tags', TAGS, '-ldflags', ldflags, '-o', to, `${MODULE}/cmd/${name}`];
  go(environment, source, args);
}

const MARK = /^\/\/ *\+k8s:openapi-gen=/m;

// The folders of packages that are described, as import paths.
function describedPackages(source) {
  const folders = new Set();
  for (const root of ['pkg', 'cmd', 'staging/src/k8s.io']) {
    for (const entry of readdirSync(join(source, root), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.go')) continue;
      const folder = entry.parentPath.slice(source.length + 1);
      if (folders.has(folder) || /k8s\.io\/(code-generator|sample-apiserver)/.test(folder)) continue;
      if (MARK.test(readFileSync(join(entry.parentPath, entry.name), 'utf8'))) folders.add(folder);
    }
  }
  return [...folders].sort().map((folder) => `${MODULE}/${folder.replace(/^staging\/src/, 'vendor')}`);
}

/** The API server's description of itself, which the source package leaves to its build. */
function generateOpenApi({ source, environment }, build) {
  const generator = join(build, 'openapi-gen');
  go(environment, source, ['build', '-o', generator, `${MODULE}/vendor/k8s.io/kube-openapi/cmd/openapi-gen`]);
  const options = {
    '-i': describedPackages(source).join(','),
    '-p': `${MODULE}/pkg/generated/openapi`,
    '-O': 'zz_generated.openapi',
    '-h': 'vendor/k8s.io/code-generator/hack/boilerplate.go.txt',
    '-r': join(build, 'violations'),
    '-o': join(environment.GOPATH, 'src'),
  };
  const args = ['-n', '10', generator, '--logtostderr', ...Object.entries(options).flat()];
  run('nice', args, { cwd: source, env: environment });
}

function checkTools() {
  try {
    run('dpkg-source', ['--version']);
  } catch {
    throw new Error('dpkg-source is missing: apt-get install dpkg-dev');
  }
}

const BUILDS = {
  kubelet: (ground, _build, to) => compile(ground, 'kubelet', to),
  'kube-apiserver': (ground, build, to) => {
    generateOpenApi(ground, build);
    compile(ground, 'kube-apiserver', to);
  },
};

/**
 * The paths of these programs (`kubelet`, `kube-apiserver`), in this order. Missing ones are built:
 * that takes all CPUs for some minutes, and 2 GB of disk.
 *
 * @throws Error if that fails
 */
export function preparePrograms(names) {
  const folder = cache();
  const programs = names.map((name) => join(folder, name));
  const missing = names.filter((_, i) => !isBuilt(programs[i]));
  if (missing.length === 0) return programs;
  checkTools();
  mkdirSync(folder, { recursive: true });
  const build = mkdtempSync(join(folder, 'build-'));
  try {
    console.log(`test:kube: building ${missing.join(' and ')} ${KUBERNETES_VERSION}, for some minutes`);
    const ground = prepareSource(build);
    for (const name of missing) {
      BUILDS[name](ground, build, join(build, name));
      renameSync(join(build, name), join(folder, name));
      writeFileSync(join(folder, stampOf(name)), RECIPE);
    }
  } finally {
    removeBuild(build);
  }
  return programs;
}

// Go makes its files read-only.
function removeBuild(build) {
  spawnSync('chmod', ['-R', 'u+w', build]);
  rmSync(build, { recursive: true, force: true });
}

/** `kubelet`: for a program by itself. */
export const prepareKubelet = () => preparePrograms(['kubelet'])[0];
export const prepareApiServer = () => preparePrograms(['kube-apiserver'])[0];
