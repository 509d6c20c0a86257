import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { pino } from 'pino'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { dumpDatabase, dumpTopics } from '../support/dump.ts'
import { addInstallation, createKnownSecrets, privateFiles } from '../support/known-secrets.ts'
import { isLong } from '../support/long.ts'
import { filesOf } from '../support/marked/scan.ts'
import { needs } from '../support/needs.ts'
import { openedRecords } from '../support/people.ts'
import { createScanner, type Finding, type Place } from '../support/secret-scan.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startTidegate } from '../support/tidegate.ts'
import {
  collectSessions,
  issueKeys,
  issueSigningSecrets,
  markers,
  misplaceKeys,
} from './carry-secrets.ts'

// Secrets must not be found anywhere: keys and their hashes, webhook signing secrets, master keys, the database
// password, tokens, nonces, cookies and document ids of the collect protocol, Idempotency-Key values, a password in a
// page's URL. Personal data is stored but must not be logged: a visitor's address, a client user id, the query of a
// page's or webhook endpoint's URL. Members that the protocol does not define stay in the batch as received. Not
// secret: publishable keys, ids, key previews, lookup hashes, and challenges of a document. Other tests are scanned for
// secret keys when their database is dropped or their server stops (key-sweep.ts).

const kafkaBrokers = inject('kafkaBrokers')
const prefix = `secrets${Date.now()}.`
const logs = [
  { name: 'the embedded log', needing: needs(), brokers: null, env: {} },
  {
    name: 'Kafka',
    needing: needs('kafka'),
    brokers: kafkaBrokers,
    env: { KAFKA_BROKERS: kafkaBrokers ?? '', KAFKA_TOPIC_PREFIX: prefix },
  },
]

describe.each(isLong ? logs : logs.slice(0, 1))(
  'a server on $name that carried secrets',
  ({ name, needing: { it }, brokers, env }) => {
    const secrets = createKnownSecrets()
    const dataDir = temporaryFolder('secrets')
    let places: Place[] = []
    let publishableKey = ''
    const seen = { revealed: 0, refused: 0 }

    beforeAll(async () => {
      const settings = {
        ...env,
        LOG_LEVEL: 'trace',
        TRUSTED_PROXIES: '127.0.0.1/32',
        RATE_LIMIT_SECRET: '9999',
      }
      const server = await startTidegate({ dataDir, env: settings })
      publishableKey = server.credentials.live.publishable_key
      await addInstallation(secrets, dataDir)
      await collectSessions(server, secrets)
      seen.revealed = await issueKeys(server, secrets)
      seen.revealed += await issueSigningSecrets(server, secrets)
      seen.refused = await misplaceKeys(server, secrets)
      expect(await server.stop()).toBe(0)
      places = await dumpAll(server.output(), { dataDir, brokers, env })
    }, 180_000)

    it('shows none of them in its database, its topics, its files or its output', () => {
      const scanner = createScanner(secrets.all())
      const start = performance.now()
      const findings = places.flatMap((place) => scanner.scan(place))
      const ms = Math.round(performance.now() - start)
      console.log(
        `secret scan, ${name}: ${secrets.all().length} secrets in ${scanner.needles} forms, ${places.length} places, ` +
          `${(scanner.scanned() / 1e6).toFixed(1)} MB, ${findings.length} found, ${ms} ms`,
      )
      expect(summary(findings)).toEqual([])
      expect(seen.revealed).toBeGreaterThanOrEqual(7)
      expect(seen.refused).toBeGreaterThanOrEqual(75)
      expect(secrets.all().length).toBeGreaterThan(50)
    })

    it('is looked through where the data is: what must be there is found', () => {
      const present = [
        { name: 'publishable key', value: publishableKey },
        { name: 'observation', value: markers.observed },
        { name: 'organization name', value: markers.organizationName },
        { name: 'log line', value: '"msg":"request"' },
      ]
      const scanner = createScanner(present)
      const found = places.flatMap((place) => scanner.scan(place))
      const where = (secret: string) =>
        found.filter((one) => one.secret === secret).map(({ place }) => place)
      const log = brokers ? `topic ${prefix}tidegate` : 'table tidegate_log.records.value'
      expect(where('publishable key')).toContainEqual(
        expect.stringMatching(/^table organizations_b\d+\./),
      )
      expect(where('publishable key')).toContainEqual(expect.stringContaining(log))
      expect(where('observation')).toContainEqual('opened BatchReceived')
      expect(where('organization name')).toContainEqual(
        expect.stringMatching(/^table organizations_b\d+\./),
      )
      expect(where('organization name')).toContainEqual(
        expect.stringMatching(/^file postgres\/pg_wal/),
      )
      expect(where('log line')).toContain('output')
    })

    it('keeps the files that hold secrets for their owner alone', async () => {
      for (const file of privateFiles)
        expect((await stat(path.join(dataDir, file))).mode & 0o077).toBe(0)
    })
  },
)

/** Read once the server is gone, so that all that it would write is there. */
async function dumpAll(
  output: string,
  {
    dataDir,
    brokers,
    env,
  }: { dataDir: string; brokers: string | null; env: Record<string, string> },
): Promise<Place[]> {
  const folder = path.join(dataDir, 'postgres')
  const postgres = await startEmbeddedPostgres({
    dataDir: folder,
    logger: pino({ level: 'silent' }),
  })
  const masterKeys = await readFile(path.join(dataDir, 'master-keys'), 'utf8')
  const settings = { ...env, DATABASE_URL: postgres.url, TIDEGATE_MASTER_KEYS: masterKeys.trim() }
  // Decrypted contents must not contain them, either.
  const tables = await Promise.all([
    dumpDatabase(postgres.url),
    openedRecords({ settings }),
  ]).finally(() => postgres.stop())
  const topics = brokers ? await dumpTopics({ brokers, prefix }) : []
  const files: Place[] = []
  for await (const file of filesOf(dataDir))
    if (!privateFiles.some((name) => file.name === `file ${name}`)) files.push(file)
  return [...tables.flat(), ...topics, ...files, { name: 'output', bytes: Buffer.from(output) }]
}

const summary = (findings: Finding[]) =>
  [
    ...new Set(findings.map(({ secret, form, place }) => `${secret} (${form}) in ${place}`)),
  ].toSorted()

describe('the scan', () => {
  const value = 'sk_live_"planted"\\secret/é'
  const bytes = Buffer.from(value)
  const forms: [string, string | Buffer][] = [
    ['raw', value],
    ['JSON', JSON.stringify({ key: value })],
    ['a URL', `https://x.example/?key=${encodeURIComponent(value)}`],
    ['hex', bytes.toString('hex')],
    ['upper-case hex', bytes.toString('hex').toUpperCase()],
    ...[0, 1, 2, 3].flatMap((shift): [string, string][] => {
      const within = Buffer.concat([Buffer.alloc(shift, 0xff), bytes, Buffer.from('~~~')])
      return [
        [`base64 behind ${shift} bytes`, within.toString('base64')],
        [`base64url behind ${shift} bytes`, within.toString('base64url')],
      ]
    }),
    ['bytes', Buffer.concat([Buffer.alloc(7, 0x73), bytes])],
  ]

  it.each(forms)('finds a secret in %s', (_, planted) => {
    const { scan } = createScanner([
      { name: 'planted', value },
      { name: 'other', value: 'something else' },
    ])
    const place = { name: 'here', bytes: Buffer.from(planted) }
    expect(new Set(scan(place).map(({ secret }) => secret))).toEqual(new Set(['planted']))
  })

  it('takes a secret for allowed only where it is said to be', () => {
    const { scan } = createScanner([
      { name: 'planted', value, mayBeIn: (place) => place === 'table' },
    ])
    expect(scan({ name: 'table', bytes })).toEqual([])
    expect(scan({ name: 'output', bytes })).not.toEqual([])
    expect(scan({ name: 'output', bytes: bytes.subarray(1) })).toEqual([])
  })
})
