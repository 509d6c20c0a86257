// `node await-role.ts <all> <updated>`: exits once all ready pods of a role belong to this release. The arguments name
// two headless services: one of all pods of the role, one of its pods of this release. Without ready pods, as in a
// first installation, there are no old ones to wait for.
import { lookup } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'

type Addresses = (name: string) => Promise<string[]>

export async function isReplaced(
  [all, updated]: [string, string],
  addresses: Addresses,
): Promise<boolean> {
  const [ready, current] = [await addresses(all), await addresses(updated)]
  return ready.every((address) => current.includes(address))
}

async function addressesOf(name: string): Promise<string[]> {
  const records = await lookup(name, { all: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTFOUND') return []
    throw error
  })
  return records.map(({ address }) => address)
}

if (import.meta.main) {
  const [all = '', updated = ''] = process.argv.slice(2)
  const check = () =>
    isReplaced([all, updated], addressesOf).catch((error: Error) => {
      console.error(error.message)
      return false
    })
  while (!(await check())) await delay(2000)
}
