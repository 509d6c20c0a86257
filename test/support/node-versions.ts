import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { installThere } from './packed.ts'
import { root } from './test-projects.ts'

/** Oldest Node that the published packages support, and the pinned one. */
export const publishedNodes = ['24.15.0', process.versions.node] as const

/** Returns the path of a Node. Other versions than the pinned one are installed into .cache by npm. */
export async function nodeProgram(version: string): Promise<string> {
  if (version === process.versions.node) return process.execPath
  const name = `node-${process.platform}-${process.arch}`
  const folder = path.join(root, '.cache/node', version)
  const program = path.join(folder, 'node_modules', name, 'bin/node')
  const isFetched = await stat(program).catch(() => undefined)
  if (isFetched) return program
  await mkdir(path.dirname(folder), { recursive: true })
  // Downloads to a temporary folder and renames it, so that aborted or concurrent runs leave no partial download.
  const fresh = await mkdtemp(`${folder}-`)
  await installThere(fresh, `${name}@${version}`)
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return program
}
