import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { addressFileOf, readConfig } from '../../../infra/config.ts'
import { readAddresses, shippedFile } from '../../../infra/ip/data/read.ts'
import { type ListFile, readReputationList } from '../../../infra/ip/data/reputation.ts'
import { groups, type SourceGroup } from '../../../infra/ip/data/sources.ts'
import { commaList, jsonFlag, wordOf } from '../arguments.ts'
import { textTable } from '../tables.ts'
import { updateAddresses } from './update.ts'

const group = wordOf(...groups)
const groupList = (text: string): SourceGroup[] => commaList(text).map(group)

interface UpdateFlags {
  from?: string
  only: SourceGroup[]
  without: SourceGroup[]
  trust: boolean
  json: boolean
}

export function defineData(data: Command): void {
  data
    .command('update')
    .description('Make the file of addresses anew, from the web or from files of a folder')
    .option('--from <folder>', 'take files from there, and ask nobody')
    .option('--only <list>', `only these of ${groups.join(', ')}`, groupList, [...groups])
    .option('--without <list>', 'all but these', groupList, [])
    .option('--trust', 'take sources that are unlike the last file, too', false)
    .option(...jsonFlag)
    .action(update)
  data
    .command('status')
    .description('Say what is known of addresses, and how old it is')
    .option(...jsonFlag)
    .action(status)
}

async function update({ from, only, without, trust, json }: UpdateFlags): Promise<void> {
  const file = addressFileOf(readConfig(process.env))
  const chosen = only.filter((one) => !without.includes(one))
  const { taken, failed } = await updateAddresses({
    file,
    from,
    groups: chosen,
    isTrusted: trust,
    now: new Date(),
  })
  if (json) console.log(JSON.stringify({ file, taken, failed }))
  else {
    for (const title of taken) console.log(`taken: ${title}`)
    for (const { title, reason } of failed) console.log(`as it was: ${title}, because ${reason}`)
    console.log(
      taken.length > 0
        ? `Written: ${file}. Servers follow within a minute.`
        : 'Nothing was written.',
    )
  }
  if (failed.length > 0 || taken.length === 0) process.exitCode = 1
}

async function status({ json }: { json: boolean }): Promise<void> {
  const config = readConfig(process.env)
  const updated = addressFileOf(config)
  const file = existsSync(updated) ? updated : shippedFile
  const lists = await Promise.all(config.REPUTATION_LISTS.map(statusOfList))
  const { head, country, network, labels } = await readAddresses(file)
  if (json) return console.log(JSON.stringify({ file, ...head, lists }))
  const count = { country, network, labels }
  const rows = head.sources.map(({ name, subject, date, licence }) => {
    const { ipv4, ipv6 } = count[subject]
    return [subject, date, name, `${ipv4.starts.length} and ${ipv6.starts.length}`, licence]
  })
  console.log(`${file}${file === shippedFile ? ' (it came along)' : ''}, made ${head.made}`)
  console.log(textTable(['subject', 'of', 'source', 'ranges of IPv4 and IPv6', 'licence'], rows))
  if (lists.length === 0) return
  const listRows = lists.map(({ category, date, file, entries, bad_lines: bad }) => [
    category,
    date,
    file,
    `${entries}`,
    `${bad.length}`,
  ])
  console.log(textTable(['list of', 'of', 'file', 'entries', 'lines that are none'], listRows))
}

async function statusOfList(list: ListFile) {
  const { category, file, count, badLines, changedAt } = await readReputationList(list)
  const date = new Date(changedAt).toISOString().slice(0, 10)
  return { category, file, date, entries: count, bad_lines: badLines }
}
