import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { startCli } from './cli.ts'

interface Exporting {
  settings: Record<string, string>
  file: string
}

/** Starts the command, and returns it once it has written rows. */
export async function startExport(args: string[], { settings, file }: Exporting) {
  // What an earlier one has left would be taken for its own.
  const before = await changedAt(file)
  const child = startCli(args, settings)
  while (!(await hasRows(file, before))) {
    expect(child.exitCode).toBeNull()
    await sleep(5)
  }
  return child
}

/** Kills the command while it writes. */
export async function killExport(args: string[], exporting: Exporting): Promise<void> {
  const child = await startExport(args, exporting)
  child.kill('SIGKILL')
  await child.result
  expect(existsSync(exporting.file)).toBe(false)
  expect(existsSync(`${exporting.file}.part`)).toBe(true)
}

const find = (file: string) => stat(`${file}.part`).catch(() => undefined)
const changedAt = async (file: string) => (await find(file))?.ctimeMs

async function hasRows(file: string, before: number | undefined): Promise<boolean> {
  const part = await find(file)
  return part !== undefined && part.ctimeMs !== before && part.size > 1000
}
