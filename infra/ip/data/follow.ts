import { stat } from 'node:fs/promises'
import type { AddressData } from './file.ts'
import { readAddresses, shippedFile } from './read.ts'
import { type ListFile, type ReputationList, readReputationList } from './reputation.ts'

const pollMs = 30_000
const dayMs = 24 * 60 * 60 * 1000
const oldDays = 90

interface FollowOptions {
  /** Where an operator's update is written; without a file there the one that comes along is read. */
  file: string
  warn: (text: string) => void
  everyMs?: number
}

export interface Followed<T> {
  current(): T
  stop(): void
}

/** Reads the file, and again whenever it was replaced. One that cannot be read fails the start, and later changes nothing. */
export async function followAddresses({
  file,
  warn,
  everyMs = pollMs,
}: FollowOptions): Promise<Followed<AddressData>> {
  let seen = await changedAt(file)
  let data = await readAddresses(seen === undefined ? shippedFile : file)
  if (seen !== undefined) warnOfAge(data, { file, warn })
  const stop = repeat(everyMs, async () => {
    const changed = await changedAt(file)
    if (changed === seen || changed === undefined) return
    seen = changed
    data = await readAddresses(file).catch((error) => {
      warn(`the new file of addresses is not used: ${error.message}`)
      return data
    })
  })
  return { current: () => data, stop }
}

/** The same of lists that an operator keeps. Lines that cannot be read are left out, with a warning. */
export async function followLists(
  files: readonly ListFile[],
  { warn, everyMs = pollMs }: Omit<FollowOptions, 'file'>,
): Promise<Followed<ReputationList[]>> {
  const read = async (one: ListFile): Promise<ReputationList> => {
    const list = await readReputationList(one)
    const [first] = list.badLines
    const all = list.badLines.length
    if (first)
      warn(`${one.file}: ${all} lines are no address or CIDR, the first of them is line ${first}`)
    return list
  }
  let lists = await Promise.all(files.map(read))
  const reread = async (list: ReputationList): Promise<ReputationList> => {
    const changed = await changedAt(list.file)
    if (changed === list.changedAt || changed === undefined) return list
    return read(list).catch((error) => {
      warn(`the new ${list.file} is not used: ${error.message}`)
      return { ...list, changedAt: changed }
    })
  }
  const stop = repeat(everyMs, async () => {
    lists = await Promise.all(lists.map(reread))
  })
  return { current: () => lists, stop }
}

// One run at a time. The work catches what it throws.
function repeat(everyMs: number, work: () => Promise<void>): () => void {
  let isBusy = false
  const timer = setInterval(async () => {
    if (isBusy) return
    isBusy = true
    await work()
    isBusy = false
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

async function changedAt(file: string): Promise<number | undefined> {
  const found = await stat(file).catch(() => undefined)
  return found?.mtimeMs
}

function warnOfAge(
  { head }: AddressData,
  { file, warn }: Pick<FollowOptions, 'file' | 'warn'>,
): void {
  const days = Math.floor((Date.now() - Date.parse(head.made)) / dayMs)
  if (days > oldDays) warn(`${file} is ${days} days old: tidegate data update makes it anew`)
}
