import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cli, jsonLines, startCli } from '../support/cli.ts'
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

describe('SIGKILL in the middle of simulate', () => {
  const dataDir = temporaryFolder('kill')
  const acksFile = path.join(dataDir, 'acks.jsonl')
  const acknowledged = async () => jsonLines<Acknowledged>(await readFile(acksFile, 'utf8'))
  let server: RunningTidegate

  beforeAll(async () => {
    server = await startTidegate({ dataDir })
    const flags = ['--sessions', '2000', '--concurrency', '16', '--seed', '7', '--json']
    const load = ['simulate', ...flags, '--acks', acksFile]
    const simulate = startCli(load, { DATA_DIR: dataDir })
    const enough = async () => expect((await acknowledged()).length).toBeGreaterThanOrEqual(atLeast)
    await eventually(enough, { timeoutMs: 60_000, intervalMs: 50 })
    await server.kill()
    simulate.kill('SIGKILL')
    await simulate.result
    server = await startTidegate({ dataDir })
  }, 120_000)

  afterAll(() => server?.stop())

  it('loses no acknowledged batch', async () => {
    const batches = await acknowledged()
    const events = await cli(['events', '--topic', 'tidegate.collect.v1'], { DATA_DIR: dataDir })
    const stored = jsonLines<{ data: Partial<Acknowledged> }>(events.stdout)
    const inLog = new Set(stored.map(({ data }) => data.body_hash))
    const lost = batches.filter((batch) => !inLog.has(batch.body_hash))
    console.log(`acknowledged ${batches.length}, lost ${lost.length}`)
    expect(batches.length).toBeGreaterThanOrEqual(atLeast)
    expect(lost).toEqual([])
  })

  it('shows every session of an acknowledged batch', async () => {
    const sessions = new Set((await acknowledged()).map((batch) => batch.session_id))
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
