import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import { cli } from '../support/cli.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

/** A thirtieth of it may come at once, which is about 20 sessions. */
const fewestBytes = { COLLECT_SOURCE_MB_PER_HOUR: '10' }
/** How many more sessions than can be read at once above the limit. */
const beyond = 15

describe('simulate above the rate limit', () => {
  let server: RunningTidegate
  beforeAll(async () => {
    server = await startTidegate({
      env: { RATE_LIMIT_PUBLISHABLE: '360', RATE_LIMIT_SECRET: '60', ...fewestBytes },
    })
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
    expect(limited.waits.secret.waitedMs).toBeGreaterThan(10_000)
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
