import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { root } from './program.ts'

const run = promisify(execFile)

/** Compiles a TypeScript project of this repository; returns its JavaScript and types by their names in it. */
export async function compiled(project: string, names: string[]): Promise<[string, string][]> {
  const all = await mkdtemp(path.join(tmpdir(), 'tidegate-types-'))
  try {
    const flags = ['--noEmit', 'false', '--declaration', '--rewriteRelativeImportExtensions']
    const args = ['-p', path.join(root, project), '--rootDir', root, '--outDir', all, ...flags]
    await run(path.join(root, 'node_modules/.bin/tsc'), args)
    return await Promise.all(
      names.map(async (name): Promise<[string, string]> => {
        const text = await readFile(path.join(all, project, name), 'utf8')
        // Compilers before TypeScript 5 know no other form.
        return [name, text.replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'")]
      }),
    )
  } finally {
    await rm(all, { recursive: true, force: true })
  }
}
