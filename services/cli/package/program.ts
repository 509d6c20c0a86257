import { cp, glob, readFile } from 'node:fs/promises'
import path from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { bundlePages, type PageAsset } from '../../console/bundle.ts'
import { buildQuestions, buildSdk } from '../../web/build-sdk.ts'

export const root = path.resolve(import.meta.dirname, '../../..')

/** Packages that stay outside the bundle, because parts of kafkajs are replaced as it runs. */
export const unbundled = ['kafkajs']

// Files that modules read as they run.
const assets = [
  'docs/{guide,operate,reference,reports,internals}/*.md',
  'docs/internals/adr/*.md',
  'docs/{guide,operate,internals,reference}/pictures/*.{png,svg}',
  'docs/result.png',
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
 * Bundles the program and what it reads into the folder, where `program.mjs` starts it. Only the packages `unbundled`
 * and PostgreSQL's programs are looked for in a folder `node_modules` above. The metafile has the inputs of the console, too.
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
    external: [...unbundled, 'pg-native'],
    define: { 'import.meta.main': 'false' },
    // `require` is for what is not an ES module among the packages.
    banner: {
      js: [
        "import { createRequire as requireFrom } from 'node:module'",
        'const require = requireFrom(import.meta.url)',
        'const programFolder = import.meta.dirname',
      ].join('\n'),
    },
    plugins: [builtSdk, builtPages(pages.assets), ownPackages, places],
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

// npm packs no folder that is called `node_modules`.
function packedPath(file: string): string {
  return path.posix.join('files', file.replaceAll('node_modules/', 'packages/'))
}

// Modules find their assets below the bundle, in folders as they are here.
const places: Plugin = {
  name: 'places',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
      const own = JSON.stringify(packedPath(path.relative(root, path.dirname(file))))
      const text = await readFile(file, 'utf8')
      const contents = text
        .replaceAll(/\bimport\.meta\.dirname/g, `(programFolder + '/' + ${own})`)
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

/** Path of an SDK's package within the package `tidegate`. */
export const ownPackage = (name: 'browser' | 'server'): string => `sdk/${name}.tgz`

const ownPackages: Plugin = {
  name: 'own packages',
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
      contents: `export const buildPages = async () => (${JSON.stringify(assets)})`,
    }))
  },
})
