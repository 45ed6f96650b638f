// Writes sbom.cdx.json for the package: what is installed with it, and what the prebuilt addons have
// linked in, as CycloneDX 1.5. The same sources give the same bytes: it has no time and no serial
// number.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HWLOC } from './prebuild-parts.mjs';
import { root } from './steps.mjs';

const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
const { name, version, description, license, dependencies } = read('package.json');
const { packages } = read('package-lock.json');

const purl = (type, id, release) => `pkg:${type}/${id.replace('@', '%40')}@${release}`;

const component = (type, id, release, licence, more) => ({
  type: 'library',
  'bom-ref': purl(type, id, release),
  name: id,
  version: release,
  licenses: [licence.includes(' ') ? { expression: licence } : { license: { id: licence } }],
  purl: purl(type, id, release),
  ...more,
});

function installed(id) {
  const { version: release, license: licence, integrity } = packages[`node_modules/${id}`];
  const [, sha512] = /^sha512-(.*)$/.exec(integrity);
  return component('npm', id, release, licence, {
    hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }],
  });
}

// THIRD-PARTY-NOTICES.md has their licences. The compilers: g++ of Debian 11, and Zig 0.11.0.
const LINKED = [
  component('generic', 'hwloc', HWLOC.version, 'BSD-3-Clause', {
    hashes: [{ alg: 'SHA-256', content: HWLOC.sha256 }],
    externalReferences: [{ type: 'website', url: 'https://www.open-mpi.org/projects/hwloc/' }],
  }),
  component('generic', 'libstdc++', '10.2.1', 'GPL-3.0-or-later WITH GCC-exception-3.1', {
    description: 'in the addons for glibc',
  }),
  component('generic', 'libc++', '16.0.6', 'Apache-2.0 WITH LLVM-exception', {
    description: 'in the addons for musl',
  }),
];

const components = [...Object.keys(dependencies).map(installed), ...LINKED];
const { licenses, purl: ref } = component('npm', name, version, license);
const bom = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: {
    component: { type: 'library', 'bom-ref': ref, name, version, description, licenses, purl: ref },
  },
  components,
  dependencies: [
    { ref, dependsOn: components.map((each) => each['bom-ref']) },
    ...components.map((each) => ({ ref: each['bom-ref'] })),
  ],
};
writeFileSync(join(root, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`);
