import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { installThere } from './packed.ts'
import { root } from './test-projects.ts'

/** The oldest Node that the published packages support, and the pinned one. */
export const publishedNodes = ['24.15.0', process.versions.node] as const

/** The program of a Node; npm fetches into .cache what is not the pinned one. */
export async function nodeProgram(version: string): Promise<string> {
  if (version === process.versions.node) return process.execPath
  const name = `node-${process.platform}-${process.arch}`
  const folder = path.join(root, '.cache/node', version)
  const program = path.join(folder, 'node_modules', name, 'bin/node')
  const isFetched = await stat(program).catch(() => undefined)
  if (isFetched) return program
  await mkdir(path.dirname(folder), { recursive: true })
  // Fetched aside and renamed, so that an aborted or concurrent run leaves no half of it.
  const fresh = await mkdtemp(`${folder}-`)
  await installThere(fresh, `${name}@${version}`)
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return program
}
