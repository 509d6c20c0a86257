import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { root } from './program.ts'

const run = promisify(execFile)

/** Compiles a TypeScript project of this repository, and returns the named JavaScript and declaration files. */
export async function compileProject(
  project: string,
  names: string[],
): Promise<[string, string][]> {
  const outDir = await mkdtemp(path.join(tmpdir(), 'tidegate-types-'))
  try {
    const flags = ['--noEmit', 'false', '--declaration', '--rewriteRelativeImportExtensions']
    const args = ['-p', path.join(root, project), '--rootDir', root, '--outDir', outDir, ...flags]
    await run(path.join(root, 'node_modules/.bin/tsc'), args)
    return await Promise.all(
      names.map(async (name): Promise<[string, string]> => {
        const text = await readFile(path.join(outDir, project, name), 'utf8')
        // TypeScript before version 5 does not support .ts in imports.
        return [name, text.replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'")]
      }),
    )
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}
