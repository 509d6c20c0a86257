import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../support/test-projects.ts'

// Those that do what no server does: they write events by themselves, copy tables, or have a floor of their own.
const steps = {
  cost: 'processor time a session over the floor',
  readback: 'GET session detail',
  requests: 'POST /v1/requests/score p99',
  webhooks: 'processor time of a webhook delivery',
  rebuild: 'rebuild of the sessions read model',
  collect: 'session open, throughput',
  claims: 'collect batch with its claim',
  guard: 'authentication and rate limit',
  log: 'log append to consumer',
}

test('the bench measures each of its steps', { timeout: 300_000 }, async () => {
  const only = Object.keys(steps).join()
  const args = ['bench/main.ts', '--quick', '--log', 'embedded', '--only', only]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  for (const measured of Object.values(steps)) expect(stdout).toContain(`| ${measured}`)
})
