import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { followLists } from '../../../../infra/ip/data/follow.ts'
import { readReputationList, reputationOf } from '../../../../infra/ip/data/reputation.ts'
import { openNetwork } from '../../../../infra/ip/network.ts'
import { eventually } from '../../../support/eventually.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const folder = temporaryFolder('reputation')

async function listOf(name: string, text: string) {
  const file = path.join(folder, name)
  await writeFile(file, text)
  return { category: name, file }
}

const notListed = { listed: false, categories: [], suspicious_network: false }
const drop = '; Spamhaus DROP\n1.10.16.0/20 ; SBL256894\n2a06:5280::/29 ; SBL1\n'
const fire = '# firehol\r\n\r\n9.9.9.9\n9.9.9.8/31 # again\n1.10.16.5\n2a00:1::7\n'

test('finds listed addresses with their categories, and listed networks', async () => {
  const files = [await listOf('spam', drop), await listOf('attacks', fire)]
  const lists = await Promise.all(files.map(readReputationList))
  for (const [ip, categories, suspicious_network] of [
    ['1.10.16.5', ['spam', 'attacks'], true],
    ['9.9.9.9', ['attacks'], false],
    ['2a06:5287::1', ['spam'], true],
    ['2a00:1::7', ['attacks'], false],
  ] as const)
    expect(reputationOf(lists, ip)).toEqual({ listed: true, categories, suspicious_network })
  for (const other of ['1.10.15.255', '1.10.32.0', '9.9.9.10', '2a06:5288::1', '2a00:2::7'])
    expect(reputationOf(lists, other)).toEqual(notListed)
})

test('returns the numbers of invalid lines and reads the others', async () => {
  const text = '9.9.9.9\nexample.com\n9.9.9.0/33\n300.1.1.1\n 8.8.8.8 \n'
  const { badLines, count } = await readReputationList(await listOf('bad', text))
  expect({ badLines, count }).toEqual({ badLines: [2, 3, 4], count: 2 })
})

test('reloads a replaced file, and keeps the list if the file is deleted', async () => {
  const file = await listOf('followed', '9.9.9.9\n')
  const warnings: string[] = []
  const followed = await followLists([file], {
    warn: (text) => void warnings.push(text),
    everyMs: 10,
  })
  const isListed = (ip: string) => reputationOf(followed.current(), ip).listed
  expect([isListed('9.9.9.9'), isListed('8.8.8.8')]).toEqual([true, false])
  await listOf('followed', '8.8.8.8\nno address\n')
  await eventually(() => expect(isListed('8.8.8.8')).toBe(true))
  expect(warnings.at(-1)).toBe(
    `${file.file}: ignoring 1 line without an address or CIDR; the first is line 2`,
  )
  await rm(file.file)
  expect(isListed('8.8.8.8')).toBe(true)
  followed.stop()
})

test('rejects a list that cannot be read at first', async () => {
  const gone = { category: 'gone', file: path.join(folder, 'gone') }
  await expect(followLists([gone], { warn: () => {} })).rejects.toThrow('ENOENT')
})

test('names the lists as a source, even for unlisted addresses', async () => {
  const lists = [await readReputationList(await listOf('named', '9.9.9.9\n'))]
  const source = await openNetwork({ cityPath: undefined, lists: () => lists })
  const { sources, reputation, summary, status } = source.lookup('9.9.9.9', 1)
  expect({ sources, status }).toEqual({ sources: ['reputation_lists'], status: 'skipped' })
  expect(reputation).toMatchObject({ listed: true, categories: ['named'] })
  expect(summary).toBe('This IP is on a list of addresses with a bad reputation.')
  expect(source.lookup('8.8.8.8', 1)).toMatchObject({
    sources: ['reputation_lists'],
    reputation: { listed: false },
  })
  expect(source.lookup('10.0.0.1', 1).sources).toEqual([])
})
