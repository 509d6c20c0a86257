import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { addressFileOf, readConfig } from '../../../infra/config.ts'
import { bundledFile, readAddresses } from '../../../infra/ip/data/read.ts'
import { type ListFile, readReputationList } from '../../../infra/ip/data/reputation.ts'
import { type SourceGroup, sourceGroups } from '../../../infra/ip/data/sources.ts'
import { choice, commaList, jsonFlag } from '../arguments.ts'
import { textTable } from '../tables.ts'
import { updateAddresses } from './update.ts'

const groupChoice = choice(...sourceGroups)
const groupList = (text: string): SourceGroup[] => commaList(text).map(groupChoice)

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
    .description('Update the IP data file, from the web or from local files')
    .option('--from <folder>', 'read source files from this folder instead of downloading them')
    .option(
      '--only <list>',
      `source groups to update, comma-separated: ${sourceGroups.join(', ')}`,
      groupList,
      [...sourceGroups],
    )
    .option('--without <list>', 'source groups to leave out, comma-separated', groupList, [])
    .option('--trust', 'accept sources that differ too much from the current file', false)
    .option(...jsonFlag)
    .action(update)
  data
    .command('status')
    .description('Show the IP data in use and its age')
    .option(...jsonFlag)
    .action(status)
}

async function update({ from, only, without, trust, json }: UpdateFlags): Promise<void> {
  const file = addressFileOf(readConfig(process.env))
  const selectedGroups = only.filter((name) => !without.includes(name))
  const { taken, failed } = await updateAddresses({
    file,
    from,
    groups: selectedGroups,
    isTrusted: trust,
    now: new Date(),
  })
  if (json) console.log(JSON.stringify({ file, taken, failed }))
  else {
    for (const title of taken) console.log(`updated: ${title}`)
    for (const { title, reason } of failed) console.log(`not updated: ${title}: ${reason}`)
    console.log(
      taken.length > 0
        ? `Wrote ${file}. Servers load it within a minute.`
        : 'No source was updated.',
    )
  }
  if (failed.length > 0 || taken.length === 0) process.exitCode = 1
}

async function status({ json }: { json: boolean }): Promise<void> {
  const config = readConfig(process.env)
  const updatedFile = addressFileOf(config)
  const file = existsSync(updatedFile) ? updatedFile : bundledFile
  const lists = await Promise.all(config.REPUTATION_LISTS.map(statusOfList))
  const { head, country, network, labels } = await readAddresses(file)
  if (json) return console.log(JSON.stringify({ file, ...head, lists }))
  const ranges = { country, network, labels }
  const rows = head.sources.map(({ name, subject, date, licence }) => {
    const { ipv4, ipv6 } = ranges[subject]
    return [subject, date, name, `${ipv4.starts.length} and ${ipv6.starts.length}`, licence]
  })
  console.log(`${file}${file === bundledFile ? ' (bundled)' : ''}, built ${head.made}`)
  console.log(textTable(['subject', 'date', 'source', 'IPv4 and IPv6 ranges', 'license'], rows))
  if (lists.length === 0) return
  const listRows = lists.map(({ category, date, file, entries, bad_lines: bad }) => [
    category,
    date,
    file,
    `${entries}`,
    `${bad.length}`,
  ])
  console.log(textTable(['category', 'date', 'file', 'entries', 'invalid lines'], listRows))
}

async function statusOfList(list: ListFile) {
  const { category, file, count, badLines, changedAt } = await readReputationList(list)
  const date = new Date(changedAt).toISOString().slice(0, 10)
  return { category, file, date, entries: count, bad_lines: badLines }
}
