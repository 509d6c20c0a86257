// `node await-role.ts <all> <updated>`: ends once the pods of a role that are ready are all of this release. Both are
// names of headless services: of all its pods, and of those of this release. Where no pod is ready there is no old one
// to wait for, as in an installation.
import { lookup } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'

type Addresses = (name: string) => Promise<string[]>

export async function isReplaced(
  [all, updated]: [string, string],
  addresses: Addresses,
): Promise<boolean> {
  const [ready, ofRelease] = [await addresses(all), await addresses(updated)]
  return ready.every((address) => ofRelease.includes(address))
}

async function addressesOf(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTFOUND') return []
    throw error
  })
  return found.map(({ address }) => address)
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
