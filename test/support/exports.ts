import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ExportManifest } from '../../services/cli/export/manifest.ts'
import { startCli } from './cli.ts'

export type ManifestSeen = Pick<ExportManifest, 'state' | 'rows' | 'parts'>

export const manifestIn = async (folder: string): Promise<ManifestSeen> =>
  JSON.parse(await readFile(path.join(folder, 'manifest.json'), 'utf8'))

/** Files that have not all of their rows yet. */
export const unfinishedIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.part'))

const begun: ManifestSeen = { state: 'unfinished', rows: 0, parts: [] }

/** Kills the command once it has made so many parts more and writes the next. */
export async function killExport(
  args: string[],
  { settings, folder, parts }: { settings: Record<string, string>; folder: string; parts: number },
): Promise<ManifestSeen> {
  const made = async () => {
    const { parts: all } = await manifestIn(folder).catch(() => begun)
    return all.filter(({ rows }) => rows !== null).length
  }
  const isInPart = async () => (await unfinishedIn(folder)).some((name) => !name.startsWith('manifest'))
  const aim = (await made()) + parts
  const child = startCli(args, settings)
  while ((await made()) < aim || !(await isInPart())) {
    expect(child.exitCode).toBeNull()
    await sleep(5)
  }
  child.kill('SIGKILL')
  await child.result
  return manifestIn(folder)
}
