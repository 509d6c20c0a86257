import { stat } from 'node:fs/promises'
import type { AddressData } from './file.ts'
import { readAddresses, shippedFile } from './read.ts'

const pollMs = 30_000
const dayMs = 24 * 60 * 60 * 1000
const oldDays = 90

interface FollowOptions {
  /** Where an operator's update is written; without a file there the one that comes along is read. */
  file: string
  warn: (text: string) => void
  everyMs?: number
}

export interface FollowedAddresses {
  current(): AddressData
  stop(): void
}

/** Reads the file, and again whenever it was replaced. One that cannot be read fails the start, and later changes nothing. */
export async function followAddresses({
  file,
  warn,
  everyMs = pollMs,
}: FollowOptions): Promise<FollowedAddresses> {
  let seen = await changedAt(file)
  let data = await readAddresses(seen === undefined ? shippedFile : file)
  if (seen !== undefined) warnOfAge(data, { file, warn })
  let isBusy = false

  async function reread(): Promise<void> {
    const changed = await changedAt(file)
    if (changed === seen || changed === undefined) return
    seen = changed
    data = await readAddresses(file)
  }

  const timer = setInterval(() => {
    if (isBusy) return
    isBusy = true
    reread()
      .catch((error: Error) => warn(`the new file of addresses is not used: ${error.message}`))
      .finally(() => {
        isBusy = false
      })
  }, everyMs)
  timer.unref()
  return { current: () => data, stop: () => clearInterval(timer) }
}

async function changedAt(file: string): Promise<number | undefined> {
  const found = await stat(file).catch(() => undefined)
  return found?.mtimeMs
}

function warnOfAge({ head }: AddressData, { file, warn }: Pick<FollowOptions, 'file' | 'warn'>): void {
  const days = Math.floor((Date.now() - Date.parse(head.made)) / dayMs)
  if (days > oldDays) warn(`${file} is ${days} days old: tidegate data update makes it anew`)
}
