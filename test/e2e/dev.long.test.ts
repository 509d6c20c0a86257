import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, inject, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { validatingFetch } from '../support/described.ts'
import { startTidegate } from '../support/tidegate.ts'

const kafkaBrokers = inject('kafkaBrokers')

async function listSessions(baseUrl: string, key: string): Promise<{ id: string }[]> {
  const checked = await validatingFetch(baseUrl)
  const answer = await checked(`${baseUrl}/v1/sessions?limit=200`, {
    headers: { authorization: `Bearer ${key}` },
  })
  expect(answer.status).toBe(200)
  const page: { data: { id: string }[] } = JSON.parse(await answer.text())
  return page.data
}

/** Start, send sessions, stop, start again: what a newcomer does on the first day. */
async function startStopStart(env: Record<string, string>): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-dev-'))
  try {
    // From its own files, as people start it.
    const first = await startTidegate({ dataDir, env: { ...env, FROM_SOURCE: '1' } })
    expect((await fetch(`${first.baseUrl}/readyz`)).status).toBe(200)
    expect(first.credentials).toEqual({
      base_url: first.baseUrl,
      organization_id: expect.stringMatching(/^org_[0-9a-z]{26}$/),
      live: {
        publishable_key: expect.stringMatching(/^pk_live_/),
        secret_key: expect.stringMatching(/^sk_live_/),
      },
      test: {
        publishable_key: expect.stringMatching(/^pk_test_/),
        secret_key: expect.stringMatching(/^sk_test_/),
      },
    })
    expect((await stat(path.join(dataDir, 'credentials.json'))).mode & 0o077).toBe(0)
    const sent = await cli(['simulate', '--sessions', '12', '--concurrency', '4', '--json'], {
      DATA_DIR: dataDir,
    })
    expect(sent).toMatchObject({ code: 0 })
    const before = await listSessions(first.baseUrl, first.credentials.live.secret_key)
    expect(before).toHaveLength(12)
    expect(await first.stop()).toBe(0)

    const second = await startTidegate({ dataDir, env })
    expect(second.credentials.live).toEqual(first.credentials.live)
    expect(await listSessions(second.baseUrl, second.credentials.live.secret_key)).toEqual(before)
    expect(await second.stop()).toBe(0)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

describe('tidegate dev', () => {
  it('starts from nothing, stops, and starts again with all its data', () => startStopStart({}), 90_000)

  it.runIf(kafkaBrokers)(
    'does the same on Kafka',
    () => startStopStart({ KAFKA_BROKERS: kafkaBrokers ?? '', KAFKA_TOPIC_PREFIX: `dev${Date.now()}.` }),
    90_000,
  )
})
