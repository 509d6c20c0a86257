import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import { cli } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const sessions = 500
const kafkaBrokers = inject('kafkaBrokers')
const logs = [
  { name: 'the embedded log', needing: needs(), env: {} },
  {
    name: 'Kafka',
    needing: needs('kafka'),
    env: { KAFKA_BROKERS: kafkaBrokers ?? '', KAFKA_TOPIC_PREFIX: `simulate${Date.now()}.` },
  },
]

/** Runs `tidegate simulate` to its end, and returns its report. */
async function simulated({ dataDir }: RunningTidegate, ...flags: string[]) {
  const { code, stdout, stderr } = await cli(['simulate', ...flags, '--verify', '--json'], {
    DATA_DIR: dataDir,
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const report: SimulationReport = JSON.parse(stdout)
  console.log(JSON.stringify({ ...report, verification: report.verification?.verdicts }))
  return report
}

describe.each(logs)('simulate on $name', ({ needing, env }) => {
  let server: RunningTidegate
  beforeAll(async () => {
    server = await startTidegate({ env })
  }, 60_000)
  afterAll(() => server?.stop())

  needing.it(
    `runs ${sessions} sessions without an error, each of them readable with a final decision`,
    async () => {
      const flags = ['--sessions', String(sessions), '--concurrency', '32', '--seed', 'e2e']
      const report = await simulated(server, ...flags)
      expect(report).toMatchObject({
        completed: sessions,
        failed: 0,
        errors: [],
        verification: { readable: sessions, unreadable: [] },
      })
      expect(report.returning).toBeGreaterThan(0)
      // Traces of a driven browser are certain, regardless of what scoring has learned.
      for (const actor of ['headless', 'selenium', 'playwright'])
        expect(Object.keys(report.verification?.verdicts[actor] ?? {})).toEqual(['automated'])
      expect(report.verification?.verdicts.human?.automated ?? 0).toBe(0)
    },
    120_000,
  )
})

describe('simulate above the rate limit', () => {
  /** The sessions above those that can be read at once. */
  const beyond = 15
  let server: RunningTidegate
  beforeAll(async () => {
    // A thirtieth of the bytes may come at once, which is about 20 sessions.
    const fewestBytes = { COLLECT_SOURCE_MB_PER_HOUR: '10' }
    const env = { RATE_LIMIT_PUBLISHABLE: '360', RATE_LIMIT_SECRET: '60', ...fewestBytes }
    server = await startTidegate({ env })
  }, 60_000)
  afterAll(() => server?.stop())

  it('waits instead of failing, and says for what', async () => {
    const load = ['--concurrency', '16', '--seed', 'limited', '--sessions']
    const limited = await simulated(server, ...load, String(60 + beyond))
    expect(limited).toMatchObject({
      completed: 60 + beyond,
      failed: 0,
      errors: [],
      verification: { readable: 60 + beyond },
    })
    // 60 sessions can be read at once; the others at one a second.
    expect(limited.waits.secret.waitedMs).toBeGreaterThan(10_000)
    const text = await cli(['simulate', ...load, '45'], { DATA_DIR: server.dataDir })
    expect(text).toMatchObject({ code: 0, stderr: '' })
    expect(text.stdout).toMatch(/^0 errors$/m)
    expect(text.stdout).toMatch(
      /^Rate limit of publishable keys: \d+ requests? delayed, \d+ got 429/m,
    )
    const { organization_id } = server.credentials
    expect(text.stdout).toContain(`tidegate org limits ${organization_id} --publishable 100000`)
  }, 120_000)
})
