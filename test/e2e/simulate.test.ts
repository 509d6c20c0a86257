import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import { cli } from '../support/cli.ts'
import { amount } from '../support/long.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

/** Sessions of a load, and how many more than can be read at once above the limit. */
const sessions = amount({ few: 100, many: 500 })
const beyond = amount({ few: 6, many: 15 })

const kafkaBrokers = inject('kafkaBrokers')
const logs = [
  { name: 'the embedded log', skip: false, env: {} },
  {
    name: 'Kafka',
    skip: !kafkaBrokers,
    env: { KAFKA_BROKERS: kafkaBrokers ?? '', KAFKA_TOPIC_PREFIX: `simulate${Date.now()}.` },
  },
]

describe.each(logs)('simulate on $name', ({ skip, env }) => {
  let server: RunningTidegate | undefined

  beforeAll(async () => {
    if (!skip) server = await startTidegate({ env })
  }, 60_000)

  afterAll(async () => {
    await server?.stop()
  })

  it.skipIf(skip)(
    `runs ${sessions} sessions without an error, each of them readable with a final decision`,
    async () => {
      const load = [
        'simulate',
        '--sessions',
        String(sessions),
        '--concurrency',
        '32',
        '--verify',
        '--json',
        '--seed',
        'e2e',
      ]
      const { code, stdout, stderr } = await cli(load, { DATA_DIR: server?.dataDir ?? '' })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const report: SimulationReport = JSON.parse(stdout)
      console.log(JSON.stringify({ ...report, verification: report.verification?.verdicts }))
      expect(report).toMatchObject({ completed: sessions, failed: 0, errors: [] })
      expect(report.verification).toMatchObject({ readable: sessions, unreadable: [] })
      expect(report.returning).toBeGreaterThan(0)
      // What a driven browser leaves behind is certain, whatever else the scoring learns.
      for (const actor of ['headless', 'selenium', 'playwright']) {
        expect(Object.keys(report.verification?.verdicts[actor] ?? {})).toEqual(['automated'])
      }
      expect(report.verification?.verdicts.human?.automated ?? 0).toBe(0)
    },
    120_000,
  )
})

describe('simulate above the rate limit', () => {
  let server: RunningTidegate
  beforeAll(async () => {
    server = await startTidegate({ env: { RATE_LIMIT_PUBLISHABLE: '360', RATE_LIMIT_SECRET: '60' } })
  }, 60_000)
  afterAll(() => server?.stop())

  it('waits instead of failing, and says for what', async () => {
    const env = { DATA_DIR: server.dataDir }
    const load = ['simulate', '--concurrency', '16', '--seed', 'limited', '--sessions']
    const { code, stdout } = await cli([...load, String(60 + beyond), '--verify', '--json'], env)
    const limited: SimulationReport = JSON.parse(stdout)
    console.log(JSON.stringify(limited.waits))
    expect(code).toBe(0)
    expect(limited).toMatchObject({
      completed: 60 + beyond,
      failed: 0,
      errors: [],
      verification: { readable: 60 + beyond },
    })
    // 60 sessions can be read at once; the others at one a second.
    expect(limited.waits.secret.waitedMs).toBeGreaterThan(amount({ few: 2000, many: 10_000 }))
    const text = await cli([...load, '45'], env)
    expect(text).toMatchObject({ code: 0, stderr: '' })
    expect(text.stdout).toMatch(/^0 errors$/m)
    expect(text.stdout).toMatch(
      /^Rate limit of publishable keys: \d+ requests held back, \d+ answered with 429/m,
    )
    const { organization_id } = server.credentials
    expect(text.stdout).toContain(`tidegate org limits ${organization_id} --publishable 100000`)
  }, 120_000)
})
