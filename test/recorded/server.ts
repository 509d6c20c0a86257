import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { endChild } from '../support/end-child.ts'
import { writeMmdb } from '../support/mmdb.ts'

const run = promisify(execFile)

interface KeyPair {
  publishable_key: string
  secret_key: string
}

export interface Credentials {
  organization_id: string
  live: KeyPair
  test: KeyPair
}

/**
 * `tidegate dev` of a checkout as a process of its own, with settings that no test meets by accident and addresses
 * that are known alike on every machine.
 */
export async function startDevelopmentServer(checkout: string) {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-test-'))
  const env = { ...process.env, ...(await settings(folder)) }
  const program = path.join(checkout, 'node_modules/.bin/node')
  const child = spawn(program, ['services/cli/main.ts', 'dev'], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const baseUrl = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const url = /^Tidegate is ready: (\S+)/.exec(line)?.[1]
      if (url) resolve(url)
    })
    child.once('exit', (code) => reject(new Error(`tidegate dev ended with ${code}`)))
  })
  const file = path.join(env.DATA_DIR, 'credentials.json')
  const credentials: Credentials = JSON.parse(await readFile(file, 'utf8'))
  const databaseUrl = (await readFile(path.join(env.DATA_DIR, 'database-url'), 'utf8')).trim()

  return {
    baseUrl,
    credentials,
    databaseUrl,
    dataDir: env.DATA_DIR,
    /** Runs `tidegate ...args --json` on the same data; resolves with what it prints. */
    async cli(...args: string[]) {
      const { stdout } = await run(program, ['--', 'services/cli/main.ts', ...args, '--json'], {
        cwd: checkout,
        env: { ...env, DATABASE_URL: databaseUrl },
      })
      return JSON.parse(stdout)
    },
    /** Resolves before the data is deleted. */
    end: () => endChild(child),
    async stop() {
      await this.end()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type DevelopmentServer = Awaited<ReturnType<typeof startDevelopmentServer>>

async function settings(folder: string) {
  const at = (file: string) => path.join(folder, file)
  const [CITY_MMDB, ASN_MMDB, ANONYMOUS_MMDB] = [at('city'), at('asn'), at('anonymous')]
  await writeMmdb(CITY_MMDB, 'GeoIP2-City', {
    '8.8.0.0/16': country('US', 'United States'),
    '62.0.0.0/8': country('DE', 'Germany'),
  })
  await writeMmdb(ASN_MMDB, 'GeoLite2-ASN', {
    '8.8.8.0/24': network(15169, 'Google LLC'),
    '62.1.0.0/16': network(64512, 'Example Net'),
    '62.2.0.0/16': network(714, 'Apple Inc.'),
  })
  await writeMmdb(ANONYMOUS_MMDB, 'GeoIP2-Anonymous-IP', {
    '8.8.8.0/24': { is_anonymous: true, is_hosting_provider: true },
  })
  return {
    CITY_MMDB,
    ASN_MMDB,
    ANONYMOUS_MMDB,
    DATA_DIR: path.join(folder, 'data'),
    PORT: '0',
    LOG_LEVEL: 'warn',
    RATE_LIMIT_SECRET: '1000000',
    FIRST_PARTY_URLS: 'https://shop.example/tg',
    RATE_LIMIT_PUBLISHABLE: '1000000',
    COLLECT_MAX_BACKLOG_MS: '600000',
    HAND_OFF_TIMEOUT_MS: '10000',
    TRUSTED_PROXIES: '127.0.0.1/32',
    WEBHOOK_RETRY_SECONDS: '0,0.05',
    BATCH_INTERVAL_MS: '2000',
    DRAIN_MS: '0',
    // As a plain installation has them, even if the caller has set others.
    DATABASE_URL: '',
    KAFKA_BROKERS: '',
    KAFKA_TOPIC_PREFIX: '',
    SCHEMA_REGISTRY_URL: '',
    TIDEGATE_MASTER_KEYS: '',
    PUBLIC_URL: '',
    HOST: '',
    TOPIC_PARTITIONS: '',
  }
}

const network = (asn: number, holder: string) => ({
  autonomous_system_number: asn,
  autonomous_system_organization: holder,
})

const country = (code: string, name: string) => ({
  country: { iso_code: code, names: { en: name } },
})
