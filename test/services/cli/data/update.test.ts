import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { strToU8, zipSync } from 'fflate'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { encodeAddresses } from '../../../../infra/ip/data/file.ts'
import { followAddresses } from '../../../../infra/ip/data/follow.ts'
import { indexRanges, type Range } from '../../../../infra/ip/data/ranges.ts'
import { readAddresses, recordsAt } from '../../../../infra/ip/data/read.ts'
import { type DataSource, dataSources, sourceGroups } from '../../../../infra/ip/data/sources.ts'
import { updateAddresses } from '../../../../services/cli/data/update.ts'

const now = new Date('2026-12-01T12:00:00Z')
const last = (made = '2026-11-01') => ({
  head: {
    format: 'tidegate addresses 2' as const,
    made,
    sources: [{ name: 'before', subject: 'country' as const, licence: 'none', date: made }],
  },
  country: indexRanges({ ipv4: slash24s(10, 'DE'), ipv6: [] }),
  network: indexRanges({ ipv4: slash24s(10, '64500 Before'), ipv6: [] }),
  labels: indexRanges({
    ipv4: [...slash24s(4, 'tor Tor', 2), ...slash24s(2, 'vpn Mullvad', 8)],
    ipv6: [],
  }),
})

/** Returns every second 8.8.n.0/24, so that ranges don't merge. */
function slash24s(count: number, name: string, from = 0): Range[] {
  return Array.from({ length: count }, (_, i) => {
    const start = 0x08080000 + (from + i) * 512
    return { start, end: start + 255, name }
  })
}

const csv = (count: number, ...columns: string[]) =>
  Array.from({ length: count }, (_, i) =>
    [`8.8.${i * 2}.0`, `8.8.${i * 2}.255`, ...columns].join(','),
  ).join('\n')

let folder = ''
let file = ''
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-data-'))
  file = path.join(folder, 'data', 'addresses.bin')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function put(name: string, content: string | Buffer): Promise<void> {
  await writeFile(path.join(folder, name), content)
  await utimes(path.join(folder, name), now, now)
}
const update = (options = {}) =>
  updateAddresses({ file, from: folder, groups: sourceGroups, isTrusted: false, now, ...options })

const failed = (title: string, reason: RegExp) => ({
  taken: [],
  failed: [{ title, reason: expect.stringMatching(reason) }],
})

async function startFrom(data = last()): Promise<void> {
  await put('last.bin', encodeAddresses(data))
  file = path.join(folder, 'last.bin')
}

describe('an update from a folder', () => {
  it('applies the files that exist, and keeps the rest of the data', async () => {
    await startFrom()
    await put('dbip-country-lite-2026-12.csv.gz', gzipSync(csv(9, 'FR')))
    await put('tor.txt', '8.8.4.0/24\n8.8.6.0/24\n8.8.8.0/24\n8.8.40.9\n')
    const prefixes = [{ ipv4Prefix: '8.8.50.0/24' }, { ipv6Prefix: '2001:db8::/64' }]
    await put('googlebot.json', JSON.stringify({ prefixes }))
    const { taken, failed } = await update({ isTrusted: true })
    const all = ['DB-IP Lite countries', 'Tor', 'Googlebot']
    expect([taken, failed]).toEqual([all, []])
    const data = await readAddresses(file)
    const at = (ip: string) => recordsAt(data, ip)
    expect(at('8.8.0.1')).toMatchObject({
      city: { country_code: 'FR' },
      asn: { autonomous_system_number: 64500 },
    })
    expect(at('8.8.40.9').anonymous).toMatchObject({ is_tor_exit_node: true })
    expect(at('8.8.10.1').anonymous).toBeNull()
    const mullvad = { is_anonymous_vpn: true, provider_name: 'Mullvad' }
    expect(at('8.8.16.1').anonymous).toMatchObject(mullvad)
    expect([at('8.8.50.1').bot, at('2001:db8::7').bot]).toEqual(['Googlebot', 'Googlebot'])
    expect(data.head.made).toBe('2026-12-01')
    expect(data.head.sources.map(({ name }) => name)).toEqual(all)
    expect((await readdir(folder)).filter((name) => name.startsWith('last'))).toEqual(['last.bin'])
  })

  it.each([
    ['few ranges', csv(3, 'DE'), /3 IPv4 ranges, and the current file has 10/],
    [
      'other countries than before',
      csv(10, 'FR').replace('FR', 'DE'),
      /only .* sampled addresses match/,
    ],
    ['nothing', 'an error page', /no IPv4 addresses/],
  ])('a file with %s is rejected, unless it is trusted', async (_, content, reason) => {
    await startFrom()
    const before = await readFile(file)
    await put('dbip-country-lite-2026-12.csv', content)
    expect(await update()).toEqual(failed('DB-IP Lite countries', reason))
    expect(await readFile(file)).toEqual(before)
    const trusted = await update({ isTrusted: true })
    expect(trusted.taken).toHaveLength(content.includes('8.8') ? 1 : 0)
  })

  it('reads iporigin from its wheel, without the unlicensed labels', async () => {
    await startFrom()
    const labels = ['Hetzner\thosting', 'Akamai\tcdn', 'Apple Private Relay\tvpn']
    const files = {
      'iporigin/__init__.py': strToU8(''),
      'iporigin/data/ranges.bin': iporiginOf(labels),
    }
    await put('iporigin-9.9.9-py3-none-any.whl', Buffer.from(zipSync(files)))
    expect(await update()).toEqual({ taken: ['iporigin'], failed: [] })
    const data = await readAddresses(file)
    expect(recordsAt(data, '9.0.0.1').anonymous).toMatchObject({ is_hosting_provider: true })
    expect(recordsAt(data, '9.0.1.1').anonymous).toBeNull()
    const relay = { is_relay: true, is_anonymous_vpn: false }
    expect(recordsAt(data, '9.0.2.1').anonymous).toMatchObject(relay)
  })

  it.each([
    ['not an archive', Buffer.from('not a zip'), /invalid zip/],
    [
      'another archive',
      Buffer.from(zipSync({ 'ranges.bin': strToU8('x') })),
      /is not in the archive/,
    ],
    [
      'an archive with a huge declared size',
      withDeclaredSize(iporiginWheel(), 4_000_000_000),
      /larger/,
    ],
    [
      'an archive that unpacks to more than its declared size',
      withDeclaredSize(iporiginWheel(), 20),
      /./,
    ],
  ])('a wheel that is %s fails and changes nothing', async (_, wheel, reason) => {
    await startFrom()
    const before = await readFile(file)
    await put('iporigin-9.9.9-py3-none-any.whl', wheel)
    expect(await update()).toEqual(failed('iporigin', reason))
    expect(await readFile(file)).toEqual(before)
  })

  it('applies only the selected groups', async () => {
    await startFrom()
    await put('tor.txt', '8.8.4.0/24\n8.8.6.0/24\n8.8.8.0/24\n')
    expect((await update({ groups: ['country', 'bots'] })).taken).toEqual([])
    expect((await update({ groups: ['tor'] })).taken).toEqual(['Tor'])
  })
})

it('the first update starts from the bundled file', async () => {
  await put('shipped.bin', encodeAddresses(last()))
  await put('bingbot.json', '{"prefixes":[{"ipv4Prefix":"9.9.9.0/24"}]}')
  expect((await update({ initialFile: path.join(folder, 'shipped.bin') })).taken).toEqual([
    'Bingbot',
  ])
  const data = await readAddresses(file)
  expect(recordsAt(data, '9.9.9.9').bot).toBe('Bingbot')
  expect(recordsAt(data, '8.8.16.1').anonymous).toMatchObject({ provider_name: 'Mullvad' })
})

it('downloads sources, and continues after a failed one', async () => {
  await startFrom()
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/tor' ? 200 : 500
    response.end('8.8.4.0/24\n8.8.6.0/24\n8.8.8.0/24\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const at = (title: string, where: string): DataSource[] =>
    dataSources
      .filter((source) => source.title === title)
      .map((source) => ({ ...source, url: () => `http://127.0.0.1:${port}/${where}` }))
  const { taken, failed } = await update({
    from: undefined,
    sources: [...at('Googlebot', 'bot'), ...at('Tor', 'tor')],
  })
  server.close()
  expect([taken, failed]).toEqual([
    ['Tor'],
    [{ title: 'Googlebot', reason: expect.stringContaining('returned 500') }],
  ])
})

it('sources use https, no package registries, and distinct file names', () => {
  for (const { url } of dataSources)
    expect(url?.(now) ?? 'https://').toMatch(/^https:\/\/(?!.*(npm|pypi|pythonhosted|jsdelivr))/)
  const names = dataSources.map(({ file: name }) => name)
  expect(
    names.filter((name) => names.some((other) => other !== name && name.startsWith(other))),
  ).toEqual([])
  expect(new Set(dataSources.map(({ group }) => group))).toEqual(new Set(sourceGroups))
})

describe('a server that watches the file', () => {
  const country = (data: ReturnType<Awaited<ReturnType<typeof followAddresses>>['current']>) =>
    recordsAt(data, '8.8.0.1').city

  it('loads new data without a restart, and keeps the old data while the new file is broken', async () => {
    await startFrom()
    const warnings: string[] = []
    const warn = (text: string) => void warnings.push(text)
    const followed = await followAddresses({ file, warn, everyMs: 10 })
    expect(country(followed.current())).toEqual({ country_code: 'DE' })
    await writeFile(file, 'broken')
    await utimes(file, 1, 1)
    const warning = /failed to load the new IP data file/
    await vi.waitFor(() => expect(warnings.join()).toMatch(warning), 20_000)
    expect(country(followed.current())).toEqual({ country_code: 'DE' })
    const french = indexRanges({ ipv4: slash24s(10, 'FR'), ipv6: [] })
    await writeFile(file, encodeAddresses({ ...last(), country: french }))
    await utimes(file, 2, 2)
    const follows = () => expect(country(followed.current())).toEqual({ country_code: 'FR' })
    await vi.waitFor(follows, 20_000)
    followed.stop()
  }, 60_000)

  it.each([
    ['2020-01-01', 1],
    [new Date().toISOString().slice(0, 10), 0],
  ])('warns once about a file of %s: %i', async (made, count) => {
    await startFrom(last(made))
    const warnings: string[] = []
    const followed = await followAddresses({ file, warn: (text) => void warnings.push(text) })
    followed.stop()
    expect(warnings).toHaveLength(count)
    expect(
      warnings.every((line) => /days old: update it with tidegate data update/.test(line)),
    ).toBe(true)
  })

  it('uses the bundled file if there is none, and rejects a broken file at startup', async () => {
    const warn = () => undefined
    const followed = await followAddresses({ file, warn })
    followed.stop()
    expect(recordsAt(followed.current(), '5.9.0.1').anonymous).toMatchObject({
      is_hosting_provider: true,
    })
    await put('broken.bin', 'broken')
    await expect(followAddresses({ file: path.join(folder, 'broken.bin'), warn })).rejects.toThrow()
  }, 60_000)
})

// Encodes one range 9.0.n.0/24 per label.
function iporiginOf(labels: string[]): Buffer {
  const head = Buffer.alloc(28)
  head.write('IPORIGIN')
  head.writeUInt16LE(1, 8)
  head.writeBigUInt64LE(1_791_200_061n, 10)
  head.writeUInt16LE(labels.length, 18)
  head.writeUInt32LE(labels.length, 20)
  const names = labels.map((label) => Buffer.concat([uint16(label.length), Buffer.from(label)]))
  const ranges = labels.map((_, i) => {
    const range = Buffer.alloc(10)
    range.writeUInt32LE(0x09000000 + i * 256, 0)
    range.writeUInt32LE(0x09000000 + i * 256 + 255, 4)
    range.writeUInt16LE(i, 8)
    return range
  })
  return Buffer.concat([head, ...names, ...ranges])
}

const iporiginWheel = () =>
  zipSync({
    'iporigin/data/ranges.bin': iporiginOf(Array.from({ length: 2000 }, () => 'Hetzner\thosting')),
  })

/** Returns the archive with another unpacked size in its directory. */
function withDeclaredSize(zip: Uint8Array, length: number): Buffer {
  const changed = Buffer.from(zip)
  changed.writeUInt32LE(length, changed.indexOf('PK\x01\x02', 0, 'latin1') + 24)
  return changed
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
