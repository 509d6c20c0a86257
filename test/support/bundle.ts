import { readFile, symlink } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { root } from './test-projects.ts'

/**
 * Bundles the program into the folder and returns its main file. Hundreds of servers and commands are started: so
 * none of them resolves, reads and strips hundreds of modules.
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
    packages: 'external',
    plugins: [ownPlaces],
    logLevel: 'error',
  })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(outdir, 'main.mjs')
}

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
