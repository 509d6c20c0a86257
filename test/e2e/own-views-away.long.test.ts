import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { decisions } from '../projections/world-events.ts'
import { startCli } from '../support/cli.ts'
import { createInstallation, type Installation } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { startKafkaBroker } from '../support/kafka-broker.ts'
import { needs } from '../support/needs.ts'
import { ensureTopics, silent } from '../support/projections.ts'
import { createAbsentProxy } from '../support/tcp-proxy.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const view = `export default { name: 'counted', version: 1, events: ['SessionScored'],
  tables: { order: { columns: { id: 'text' }, key: ['id'] } },
  handle: ({ id }) => [{ table: 'order', key: { id }, to: () => ({ id }) }] }`

const patient = { timeoutMs: 120_000 }

const file = path.join(temporaryFolder('away'), 'counted.ts')
let installation: Installation

beforeAll(() => writeFile(file, view))

function start(settings: Record<string, string>) {
  const child = startCli(['project', file], settings)
  let said = ''
  child.stderr?.on('data', (data) => {
    said += data
  })
  const times = (words: string) => said.split(words).length - 1
  return {
    says: (words: string, count = 1) =>
      eventually(() => expect(times(words), said).toBe(count), patient),
    said: () => said,
    // As Ctrl-C does.
    async interrupt() {
      child.kill('SIGINT')
      expect((await child.result).code, said).toBe(0)
    },
  }
}

const hasRows = (count: number) =>
  eventually(async () => {
    const { rows } = await installation.pool.query(
      'select count(*)::integer as n from view_counted."order"',
    )
    expect(rows).toEqual([{ n: count }])
  }, patient)

const decide = (from: number, count: number) =>
  installation.append(decisions(from, count).map(({ event }) => event))

interface Away {
  settings: Record<string, string>
  /** Name in the command's output. */
  name: 'database' | 'log'
  goes: () => Promise<void>
  comes: () => Promise<void>
}

// It is away at first.
async function comesAndGoes({ settings, name, goes, comes }: Away): Promise<void> {
  const line = `Cannot reach the ${name}; waiting for it.\n`
  const first = start(settings)
  await first.says(line)
  await first.interrupt()
  expect(first.said()).toBe(line)

  const running = start(settings)
  await running.says(line)
  await comes()
  await hasRows(100)
  await running.says('Reconnected')
  await goes()
  await running.says(line, 2)
  await comes()
  await decide(101, 50)
  await hasRows(150)
  await running.says('Reconnected', 2)
  await goes()
  await running.says(line, 3)
  await running.interrupt()
  // Apart from lines of the view, the outage is reported once.
  expect(running.said().replaceAll(/^\d+ records? read, .*\n/gm, '')).toBe(
    `${line}Reconnected to the database and the log.\n`.repeat(2) + line,
  )
}

it('waits for a database that is away, and ends at Ctrl-C meanwhile', async () => {
  installation = await createInstallation()
  await ensureTopics(await installation.log())
  await decide(1, 100)
  const { DATABASE_URL: url = '' } = installation.settings
  const port = await freePort()
  const address = new URL(url)
  address.searchParams.delete('host')
  address.host = `127.0.0.1:${port}`
  const settings = { DATABASE_URL: address.href, KAFKA_BROKERS: '' }
  await comesAndGoes({ name: 'database', settings, ...createAbsentProxy(url, port) })
  await installation.stop()
}, 480_000)

needs('kafka-jars').it(
  'waits for a broker that is away, and ends at Ctrl-C meanwhile',
  async () => {
    const [port, advertised] = [await freePort(), await freePort()]
    const listeners = [{ name: 'FAR', protocol: 'PLAINTEXT', port, advertised }]
    const broker = await startKafkaBroker({ logger: silent, listeners })
    installation = await createInstallation({ env: { KAFKA_BROKERS: broker.brokers } })
    await ensureTopics(await installation.log())
    await decide(1, 100)
    const { DATABASE_URL = '' } = installation.settings
    const settings = { DATABASE_URL, KAFKA_BROKERS: `127.0.0.1:${advertised}` }
    const proxy = createAbsentProxy(`tcp://127.0.0.1:${port}`, advertised)
    await comesAndGoes({ name: 'log', settings, ...proxy })
    await installation.stop()
    await broker.stop()
  },
  900_000,
)
