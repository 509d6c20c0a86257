import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

let server: RunningTidegate
beforeAll(async () => {
  server = await startTidegate({ hasPostgres: true })
})
afterAll(() => server?.stop())

it('a second start on the same port and data says so, ends with 1, and the first goes on', async () => {
  const port = new URL(server.baseUrl).port
  const second = await cli(['dev'], { DATA_DIR: server.dataDir, PORT: port, LOG_LEVEL: 'error' })
  expect(second.code).toBe(1)
  expect(second.stderr).toMatch(new RegExp(`Port ${port} on 127.0.0.1 is in use`))
  const sent = await cli(['simulate', '--sessions', '3', '--json'], { DATA_DIR: server.dataDir })
  expect(sent).toMatchObject({ code: 0 })
}, 60_000)

it.each(['CITY_MMDB', 'ASN_MMDB', 'ANONYMOUS_MMDB'])(
  'a start that fails late, for want of %s, ends with 1 and takes its database down with it',
  async (setting) => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-start-'))
    const missing = path.join(dataDir, 'missing.mmdb')
    const failed = await cli(['dev'], {
      DATA_DIR: dataDir,
      PORT: '0',
      [setting]: missing,
      LOG_LEVEL: 'error',
    })
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toMatch(
      /^The server did not start: failed to read CITY_MMDB, ASN_MMDB or ANONYMOUS_MMDB: .*missing\.mmdb/,
    )
    expect(existsSync(path.join(dataDir, 'postgres', 'postmaster.pid'))).toBe(false)
    await rm(dataDir, { recursive: true })
  },
  60_000,
)
