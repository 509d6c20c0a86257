import { stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, inject, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { validatingFetch } from '../support/described.ts'
import { needs } from '../support/needs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

async function listSessions(baseUrl: string, key: string): Promise<{ id: string }[]> {
  const checked = await validatingFetch(baseUrl)
  const answer = await checked(`${baseUrl}/v1/sessions?limit=200`, {
    headers: { authorization: `Bearer ${key}` },
  })
  expect(answer.status).toBe(200)
  const page: { data: { id: string }[] } = JSON.parse(await answer.text())
  return page.data
}

function keysOf(environment: string) {
  const publishable = expect.stringMatching(new RegExp(`^pk_${environment}_`))
  return {
    publishable_key: publishable,
    secret_key: expect.stringMatching(new RegExp(`^sk_${environment}_`)),
    ios_publishable_key: publishable,
    android_publishable_key: publishable,
  }
}

/** 404 where the organization lacks the capability; 503 where what is known of addresses is missing. */
async function rotationStatus({ baseUrl, credentials }: RunningTidegate): Promise<number> {
  const items = [{ ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }]
  const headers = {
    authorization: `Bearer ${credentials.live.secret_key}`,
    'content-type': 'application/json',
  }
  const request = { method: 'POST', headers, body: JSON.stringify({ items }) }
  return (await fetch(`${baseUrl}/v1/agents/ip-rotation`, request)).status
}

/** Start, send sessions, stop, start again: what a newcomer does on the first day. */
async function startStopStart(dataDir: string, env: Record<string, string>): Promise<void> {
  // From its own files, as people start it.
  const first = await startTidegate({ dataDir, env: { ...env, FROM_SOURCE: '1' } })
  expect((await fetch(`${first.baseUrl}/readyz`)).status).toBe(200)
  // By the file of addresses that comes along.
  expect(await rotationStatus(first)).toBe(200)
  expect(first.credentials).toEqual({
    base_url: first.baseUrl,
    organization_id: expect.stringMatching(/^org_[0-9a-z]{26}$/),
    live: keysOf('live'),
    test: keysOf('test'),
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
  expect(second.credentials).toEqual({ ...first.credentials, base_url: second.baseUrl })
  expect(await listSessions(second.baseUrl, second.credentials.live.secret_key)).toEqual(before)
  expect(await second.stop()).toBe(0)

  const file = path.join(dataDir, 'credentials.json')
  await writeFile(file, '{"organization_id": ')
  const third = await cli(['dev'], { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: '0', ...env })
  expect(third.code).toBe(1)
  expect(third.stderr + third.stdout).toContain(`${file} is not valid JSON: delete it`)
}

describe('tidegate dev', () => {
  const [embedded, onKafka] = [temporaryFolder('dev'), temporaryFolder('dev-kafka')]

  it(
    'starts from nothing, stops, and starts again with all its data',
    () => startStopStart(embedded, {}),
    90_000,
  )

  needs('kafka').it(
    'does the same on Kafka',
    () => {
      const prefix = `dev${Date.now()}.`
      const env = { KAFKA_BROKERS: inject('kafkaBrokers') ?? '', KAFKA_TOPIC_PREFIX: prefix }
      return startStopStart(onKafka, env)
    },
    90_000,
  )
})
