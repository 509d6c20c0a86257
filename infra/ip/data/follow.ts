import { stat } from 'node:fs/promises'
import { countText } from '../../text.ts'
import type { AddressData } from './file.ts'
import { bundledFile, readAddresses } from './read.ts'
import { type ListFile, type ReputationList, readReputationList } from './reputation.ts'

const pollMs = 30_000
const dayMs = 24 * 60 * 60 * 1000
const oldDays = 90

interface FollowOptions {
  /** Path of the operator's IP data file. If it does not exist, the bundled one is used. */
  file: string
  warn: (text: string) => void
  everyMs?: number
}

export interface Followed<T> {
  current(): T
  stop(): void
}

/**
 * Reads the file, and reloads it when it is replaced. Rejects if it cannot be read; later that only causes a warning.
 */
export async function followAddresses({
  file,
  warn,
  everyMs = pollMs,
}: FollowOptions): Promise<Followed<AddressData>> {
  let loadedAt = await modifiedAt(file)
  let data = await readAddresses(loadedAt === undefined ? bundledFile : file)
  if (loadedAt !== undefined) warnOfAge(data, { file, warn })
  const stop = repeat(everyMs, async () => {
    const changed = await modifiedAt(file)
    if (changed === loadedAt || changed === undefined) return
    loadedAt = changed
    data = await readAddresses(file).catch((error) => {
      warn(`failed to load the new IP data file: ${error.message}`)
      return data
    })
  })
  return { current: () => data, stop }
}

/** Like `followAddresses`, for the operator's reputation lists. Ignores invalid lines with a warning. */
export async function followLists(
  files: readonly ListFile[],
  { warn, everyMs = pollMs }: Omit<FollowOptions, 'file'>,
): Promise<Followed<ReputationList[]>> {
  const read = async (listFile: ListFile): Promise<ReputationList> => {
    const list = await readReputationList(listFile)
    const [first] = list.badLines
    const count = list.badLines.length
    if (first)
      warn(
        `${listFile.file}: ignoring ${countText(count, 'line')} without an address or CIDR; the first is line ${first}`,
      )
    return list
  }
  let lists = await Promise.all(files.map(read))
  const reread = async (list: ReputationList): Promise<ReputationList> => {
    const changed = await modifiedAt(list.file)
    if (changed === list.changedAt || changed === undefined) return list
    return read(list).catch((error) => {
      warn(`failed to load the new ${list.file}: ${error.message}`)
      return { ...list, changedAt: changed }
    })
  }
  const stop = repeat(everyMs, async () => {
    lists = await Promise.all(lists.map(reread))
  })
  return { current: () => lists, stop }
}

// Runs `work` periodically, one run at a time. `work` must not reject.
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

async function modifiedAt(file: string): Promise<number | undefined> {
  const stats = await stat(file).catch(() => undefined)
  return stats?.mtimeMs
}

function warnOfAge(
  { head }: AddressData,
  { file, warn }: Pick<FollowOptions, 'file' | 'warn'>,
): void {
  const days = Math.floor((Date.now() - Date.parse(head.made)) / dayMs)
  if (days > oldDays) warn(`${file} is ${days} days old: update it with tidegate data update`)
}
