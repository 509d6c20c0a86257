import { afterAll, beforeAll, describe, expect, inject } from 'vitest'
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

describe.each(logs)('simulate on $name', ({ needing, env }) => {
  let server: RunningTidegate | undefined

  beforeAll(async () => {
    server = await startTidegate({ env })
  }, 60_000)

  afterAll(async () => {
    await server?.stop()
  })

  needing.it(
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
