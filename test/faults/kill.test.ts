import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cli, startCli } from '../support/cli.ts'
import { validatingFetch } from '../support/described.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

/** Batches acknowledged before the kill; simulate goes on well beyond. */
const atLeast = 400

interface Acknowledged {
  session_id: string
  seq: number
  body_hash: string
}

async function jsonLines<T>(text: string | Promise<string>): Promise<T[]> {
  const lines = (await text).split('\n').filter((line) => line.endsWith('}'))
  return lines.map((line): T => JSON.parse(line))
}

describe('SIGKILL in the middle of simulate', () => {
  const dataDir = temporaryFolder('kill')
  const acksFile = path.join(dataDir, 'acks.jsonl')
  let server: RunningTidegate

  beforeAll(async () => {
    server = await startTidegate({ dataDir })
    const flags = ['--sessions', '2000', '--concurrency', '16', '--seed', '7', '--json']
    const load = ['simulate', ...flags, '--acks', acksFile]
    const simulate = startCli(load, { DATA_DIR: dataDir })
    const enough = async () =>
      expect((await jsonLines(readFile(acksFile, 'utf8'))).length).toBeGreaterThanOrEqual(atLeast)
    await eventually(enough, { timeoutMs: 60_000, intervalMs: 50 })
    await server.kill()
    simulate.kill('SIGKILL')
    await simulate.result
    server = await startTidegate({ dataDir })
  }, 120_000)

  afterAll(() => server?.stop())

  it('loses no acknowledged batch', async () => {
    const acknowledged = await jsonLines<Acknowledged>(readFile(acksFile, 'utf8'))
    const events = await cli(['events', '--topic', 'tidegate.collect.v1'], { DATA_DIR: dataDir })
    const inLog = new Map<string, number>()
    for (const { data } of await jsonLines<{ data: Acknowledged }>(events.stdout)) {
      if (data.body_hash) inLog.set(data.body_hash, (inLog.get(data.body_hash) ?? 0) + 1)
    }
    const lost = acknowledged.filter((batch) => !inLog.has(batch.body_hash))
    console.log(`acknowledged ${acknowledged.length}, lost ${lost.length}`)
    expect(acknowledged.length).toBeGreaterThanOrEqual(atLeast)
    expect(lost).toEqual([])
  })

  it('shows every session of an acknowledged batch', async () => {
    const acknowledged = await jsonLines<Acknowledged>(readFile(acksFile, 'utf8'))
    const sessions = new Set(acknowledged.map((batch) => batch.session_id))
    const { base_url, live } = server.credentials
    const headers = { authorization: `Bearer ${live.secret_key}` }
    const checked = await validatingFetch(base_url)
    await eventually(
      async () => {
        const answers = await Promise.all(
          [...sessions].map((id) => checked(`${base_url}/v1/sessions/${id}`, { headers })),
        )
        expect(answers.filter((answer) => answer.status !== 200)).toEqual([])
      },
      { timeoutMs: 40_000, intervalMs: 200 },
    )
  }, 60_000)

  it('rebuilds the sessions read model to the same tables', async () => {
    const result = await cli(['rebuild', 'sessions', '--json'], { DATA_DIR: dataDir })
    expect(result.stderr).toBe('')
    expect(JSON.parse(result.stdout)).toMatchObject({ equal: true, switched: true })
  }, 60_000)
})
