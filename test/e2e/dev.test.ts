import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, inject, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { validatingFetch } from '../support/described.ts'
import { eventually } from '../support/eventually.ts'
import { isLong } from '../support/long.ts'
import { startTidegate } from '../support/tidegate.ts'

const kafkaBrokers = inject('kafkaBrokers')
const root = path.resolve(import.meta.dirname, '../..')

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

  it.runIf(kafkaBrokers && isLong)(
    'does the same on Kafka',
    () => startStopStart({ KAFKA_BROKERS: kafkaBrokers ?? '', KAFKA_TOPIC_PREFIX: `dev${Date.now()}.` }),
    90_000,
  )
})

describe('make run', () => {
  it('prints the URLs, takes requests, and ends at Ctrl-C', async () => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-make-'))
    // The packages are installed: this very test runs from them.
    const args = ['--assume-old', 'node_modules/.package-lock.json', 'run']
    const env = { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'warn' }
    // A process group of its own, as a terminal gives it.
    const make = spawn('make', args, { cwd: root, env, detached: true })
    const lines: string[] = []
    createInterface(make.stderr).on('line', (line) => lines.push(line))
    for await (const line of createInterface(make.stdout)) {
      lines.push(line)
      if (line.includes('Credentials')) break
    }
    expect(lines.join('\n')).toMatch(/^ {2}Demo +http\S+\/demo$/m)
    const demo = /http\S+\/demo$/m.exec(lines.join('\n'))?.[0] ?? ''
    expect((await fetch(demo)).status).toBe(200)
    const exited = once(make, 'exit')
    process.kill(-(make.pid ?? 0), 'SIGINT')
    await exited
    await eventually(() => expect(fetch(demo)).rejects.toThrow(), { timeoutMs: 15_000 })
    const database = path.join(dataDir, 'postgres', 'postmaster.pid')
    await eventually(() => expect(stat(database)).rejects.toThrow('ENOENT'), { timeoutMs: 15_000 })
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 })
  }, 90_000)
})
