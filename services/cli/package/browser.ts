import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Metafile } from 'esbuild'
import { bundleForBrowsers } from '../../web/build-sdk.ts'
import { root } from './program.ts'

const run = promisify(execFile)

// Files that are compiled one by one. The rest of the SDK is in one bundle, and its types are not public.
const compiled = ['package.d.ts', 'api.d.ts', 'react.js', 'react.d.ts']

/** Writes the modules of the browser SDK's package, and their types. */
export async function buildBrowserPackage(folder: string): Promise<Metafile> {
  const { code, metafile } = await bundleForBrowsers('package.ts')
  const all = await mkdtemp(path.join(tmpdir(), 'tidegate-types-'))
  try {
    const flags = ['--noEmit', 'false', '--declaration', '--rewriteRelativeImportExtensions']
    const project = ['-p', path.join(root, 'services/web/sdk'), '--rootDir', root, '--outDir', all]
    await run(path.join(root, 'node_modules/.bin/tsc'), [...project, ...flags])
    for (const file of compiled) {
      const text = await readFile(path.join(all, 'services/web/sdk', file), 'utf8')
      // Compilers before TypeScript 5 know no other form.
      await writeFile(path.join(folder, file), text.replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'"))
    }
  } finally {
    await rm(all, { recursive: true, force: true })
  }
  await writeFile(path.join(folder, 'package.js'), code)
  return metafile
}
