import { cp, glob, readFile } from 'node:fs/promises'
import path from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { bundlePages, type PageAsset } from '../../console/bundle.ts'
import { buildQuestions, buildSdk } from '../../web/build-sdk.ts'

export const root = path.resolve(import.meta.dirname, '../../..')

/** Packages that stay outside the bundle. Parts of kafkajs are replaced at run time. */
export const externalPackages = ['kafkajs']

// Files that modules read at run time, which the bundler does not find.
const assets = [
  'docs/{guide,operate,reference,reports,internals}/*.md',
  'docs/internals/adr/*.md',
  'docs/{guide,operate,internals,reference}/pictures/*.{png,svg}',
  'docs/examples/**/*.{js,mjs,ts,tsx,json,py,go}',
  'test/fixtures/*/vector*.json',
  'infra/http/*.{css,svg}',
  'infra/ip/data/*.bin',
  'schemas/*/*.avsc',
  'services/cli/rescore/*.css',
  'services/console/pages/index.html',
  'services/gate/page/assets/*.{css,html,js}',
  'services/web/docs/*.{css,js,json}',
  'services/web/pages/*',
  'services/web/server-sdk/python/*.py',
]

/**
 * Bundles the program and its assets into the folder, with `program.mjs` as its entry. Only `externalPackages` and the
 * PostgreSQL binaries are loaded from `node_modules`. The returned metafile includes the inputs of the console.
 */
export async function bundleProgram(folder: string): Promise<Metafile> {
  const pages = await bundlePages()
  const { metafile } = await build({
    entryPoints: [path.join(root, 'services/cli/program.ts')],
    outdir: folder,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    target: 'node24',
    external: [...externalPackages, 'pg-native'],
    define: { 'import.meta.main': 'false' },
    // CommonJS packages in the bundle need `require`.
    banner: {
      js: [
        "import { createRequire as requireFrom } from 'node:module'",
        'const require = requireFrom(import.meta.url)',
        'const programFolder = import.meta.dirname',
      ].join('\n'),
    },
    plugins: [builtSdk, builtPages(pages.assets), bundledPackages, assetPaths],
    metafile: true,
    logLevel: 'error',
  })
  for await (const file of glob(assets, {
    cwd: root,
    exclude: ['docs/examples/**/node_modules/**', 'docs/examples/**/.next/**'],
  }))
    await cp(path.join(root, file), path.join(folder, packedPath(file)))
  return { ...metafile, inputs: { ...metafile.inputs, ...pages.metafile.inputs } }
}

// npm never packs folders named `node_modules`.
function packedPath(file: string): string {
  return path.posix.join('files', file.replaceAll('node_modules/', 'packages/'))
}

// Makes modules look for their assets in the bundle's copy of the source folders.
const assetPaths: Plugin = {
  name: 'asset paths',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
      const folder = JSON.stringify(packedPath(path.relative(root, path.dirname(file))))
      const text = await readFile(file, 'utf8')
      const contents = text
        .replaceAll(/\bimport\.meta\.dirname/g, `(programFolder + '/' + ${folder})`)
        .replaceAll("'../../node_modules/", "'../../packages/")
      return { contents, loader: 'ts' }
    })
  },
}

const builtSdk: Plugin = {
  name: 'built SDK',
  setup(bundle) {
    bundle.onLoad({ filter: /\/services\/web\/build-sdk\.ts$/ }, async () => {
      const [sdk, questions] = [
        JSON.stringify(await buildSdk()),
        JSON.stringify(await buildQuestions()),
      ]
      return {
        contents: `export const buildSdk = async () => ${sdk}; export const buildQuestions = async () => ${questions}`,
      }
    })
  },
}

/** Returns the path of an SDK's tarball within the package `tidegate`. */
export const sdkTarball = (name: 'browser' | 'server'): string => `sdk/${name}.tgz`

// Replaces hosted.ts: the package serves the tarballs that are bundled with it.
const bundledPackages: Plugin = {
  name: 'bundled packages',
  setup(bundle) {
    bundle.onLoad({ filter: /\/services\/cli\/package\/hosted\.ts$/ }, () => ({
      contents: `
        import { readFile } from 'node:fs/promises'
        import { tarballOf } from './tarball.ts'
        export const hostedPackages = () => (name) => name === 'tidegate'
          ? tarballOf(programFolder + '/..')
          : readFile(\`\${programFolder}/sdk/\${name}.tgz\`)`,
      loader: 'ts',
    }))
  },
}

const builtPages = (assets: PageAsset[]): Plugin => ({
  name: 'built pages of the console',
  setup(bundle) {
    bundle.onLoad({ filter: /\/services\/console\/bundle\.ts$/ }, () => ({
      contents: `export const buildAssets = async () => (${JSON.stringify(assets)})`,
    }))
  },
})
