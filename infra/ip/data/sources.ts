import { gunzipSync } from 'node:zlib'
import { type UnzipFileInfo, unzipSync } from 'fflate'
import type { SubjectName } from './file.ts'
import { type LabelKind, labelName, labelOfIporigin } from './labels.ts'
import { countryCode, countryOf, networkOf, networkOfRecord } from './names.ts'
import type { Ranges } from './ranges.ts'
import { rangesOfCsv, rangesOfIporigin, rangesOfMmdb, rangesOfText } from './readers.ts'

/** Groups of sources that can be switched on and off. */
export const sourceGroups = [
  'country',
  'network',
  'iporigin',
  'clouds',
  'cdns',
  'tor',
  'relay',
  'bots',
] as const
export type SourceGroup = (typeof sourceGroups)[number]

/** A third-party source from which the IP data file is rebuilt. */
export interface DataSource {
  /** Prefix by which the source's file is found in a folder. */
  file: string
  group: SourceGroup
  subject: SubjectName
  title: string
  licence: string
  /** Returns the download URL; null = downloaded by pip. */
  url: ((now: Date) => string) | null
  read(file: Buffer): Ranges
}

const dbip = { licence: 'CC BY 4.0, which asks for a link to db-ip.com' }
const month = (now: Date) => now.toISOString().slice(0, 7)

const dbipCountry: DataSource = {
  file: 'dbip-country-lite',
  group: 'country',
  subject: 'country',
  title: 'DB-IP Lite countries',
  ...dbip,
  url: (now) => `https://download.db-ip.com/free/dbip-country-lite-${month(now)}.mmdb.gz`,
  read: (file) => readMmdbOrCsv(file, countryOf, ([code = '']) => countryCode(code)),
}

const dbipNetwork: DataSource = {
  file: 'dbip-asn-lite',
  group: 'network',
  subject: 'network',
  title: 'DB-IP Lite networks',
  ...dbip,
  url: (now) => `https://download.db-ip.com/free/dbip-asn-lite-${month(now)}.mmdb.gz`,
  read: (file) => readMmdbOrCsv(file, networkOfRecord, networkOf),
}

const iporigin: DataSource = {
  file: 'iporigin',
  group: 'iporigin',
  subject: 'labels',
  title: 'iporigin',
  licence: 'MIT; its lists are published by the operators, or CC0 1.0',
  url: null,
  read: (wheel) =>
    rangesOfIporigin(unzipped(wheel, 'iporigin/data/ranges.bin'), labelOfIporigin).ranges,
}

interface List {
  group: SourceGroup
  kind: LabelKind
  operator: string
  url: string
}

function list({ group, kind, operator, url }: List): DataSource {
  return {
    file: operator.toLowerCase().replaceAll(' ', '-'),
    group,
    subject: 'labels',
    title: operator,
    licence: 'published by its operator',
    url: () => url,
    read: (file) => rangesOfText(file.toString('utf8'), labelName({ kind, operator })),
  }
}

const clouds = {
  'Amazon AWS': 'https://ip-ranges.amazonaws.com/ip-ranges.json',
  'Google Cloud': 'https://www.gstatic.com/ipranges/cloud.json',
  'Oracle Cloud': 'https://docs.oracle.com/en-us/iaas/tools/public_ip_ranges.json',
  DigitalOcean: 'https://digitalocean.com/geo/google.csv',
  Linode: 'https://geoip.linode.com/',
}
const cdns = { Fastly: 'https://api.fastly.com/public-ip-list' }
const bots = {
  Googlebot: 'https://developers.google.com/static/search/apis/ipranges/googlebot.json',
  'Google special crawlers':
    'https://developers.google.com/static/search/apis/ipranges/special-crawlers.json',
  Bingbot: 'https://www.bing.com/toolbox/bingbot.json',
  GPTBot: 'https://openai.com/gptbot.json',
  'ChatGPT-User': 'https://openai.com/chatgpt-user.json',
  'OAI-SearchBot': 'https://openai.com/searchbot.json',
  PerplexityBot: 'https://www.perplexity.ai/perplexitybot.json',
  'Perplexity-User': 'https://www.perplexity.ai/perplexity-user.json',
  Applebot: 'https://search.developer.apple.com/applebot.json',
  AhrefsBot: 'https://api.ahrefs.com/v3/public/crawler-ip-ranges',
}

const lists = (group: SourceGroup, kind: LabelKind, byOperator: Record<string, string>) =>
  Object.entries(byOperator).map(([operator, url]) => list({ group, kind, operator, url }))

/** Sources in the order in which they are applied: operators' own lists come after iporigin's copies of them. */
export const dataSources: readonly DataSource[] = [
  dbipCountry,
  dbipNetwork,
  iporigin,
  ...lists('clouds', 'hosting', clouds),
  ...lists('cdns', 'cdn', cdns),
  ...lists('tor', 'tor', { Tor: 'https://check.torproject.org/torbulkexitlist' }),
  ...lists('relay', 'relay', {
    'Apple Private Relay': 'https://mask-api.icloud.com/egress-ip-ranges.csv',
  }),
  ...lists('bots', 'bot', bots),
]

/** Limit for a decompressed file. */
const maxBytes = 200_000_000

function readMmdbOrCsv(
  file: Buffer,
  ofRecord: (record: object) => string,
  ofColumns: (columns: string[]) => string,
): Ranges {
  const plain =
    file.readUInt16BE(0) === 0x1f8b ? gunzipSync(file, { maxOutputLength: maxBytes }) : file
  const isMmdb = plain.includes('\xab\xcd\xefMaxMind.com', 0, 'latin1')
  return isMmdb ? rangesOfMmdb(plain, ofRecord) : rangesOfCsv(plain.toString('utf8'), ofColumns)
}

function unzipped(zip: Buffer, path: string): Buffer {
  const filter = ({ name, originalSize }: UnzipFileInfo) =>
    name === path && originalSize <= maxBytes
  const { [path]: file } = unzipSync(zip, { filter })
  if (!file) throw new Error(`${path} is not in the archive, or is larger than ${maxBytes} bytes`)
  return Buffer.from(file)
}
