import { execFileSync } from 'node:child_process'
import { readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { expect, it } from 'vitest'
import { projections } from '../../services/server/dependencies.ts'
import { cli } from '../support/cli.ts'
import { validatingFetch } from '../support/described.ts'
import { queryAt } from '../support/server-databases.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startTidegate } from '../support/tidegate.ts'

const dataDir = temporaryFolder('update')
const preRelease = temporaryFolder('pre-release')

async function change(folder: string, statements: string): Promise<void> {
  await queryAt(await readFile(path.join(folder, 'database-url'), 'utf8'), [statements])
}

/** Makes the tables those of an earlier version of the program. */
const age = () =>
  change(
    dataDir,
    `update tidegate.projection_builds set version = version - 1;
     drop view read.organizations;
     alter table organizations_b1.organizations drop column capabilities;
     create view read.organizations as select * from organizations_b1.organizations`,
  )

it('tidegate dev goes on with the data of an earlier version, and says which read models it built anew', async () => {
  const env = { LOG_LEVEL: 'info' }
  const simulate = () =>
    cli(['simulate', '--sessions', '5', '--verify', '--json'], { DATA_DIR: dataDir })
  const first = await startTidegate({ dataDir, env })
  const rebuilt = /"msg":"rebuilt an outdated read model"/g
  expect(first.output()).not.toMatch(rebuilt)
  expect(await simulate()).toMatchObject({ code: 0 })
  await age()
  expect(await first.stop()).toBe(0)

  const second = await startTidegate({ dataDir, env })
  expect(second.output().match(rebuilt)).toHaveLength(projections.length)
  expect(second.credentials.live).toEqual(first.credentials.live)
  expect((await fetch(`${second.baseUrl}/readyz`)).status).toBe(200)
  expect(await simulate()).toMatchObject({ code: 0 })
  const authorization = `Bearer ${second.credentials.live.secret_key}`
  const checked = await validatingFetch(second.baseUrl)
  const sessions = await checked(`${second.baseUrl}/v1/sessions`, { headers: { authorization } })
  const { data }: { data: unknown[] } = JSON.parse(await sessions.text())
  expect(data).toHaveLength(10)
  expect(await second.stop()).toBe(0)

  const third = await startTidegate({ dataDir, env })
  expect(third.output()).not.toMatch(rebuilt)
  expect(await third.stop()).toBe(0)

  // The backup of docs/operate/deploying.md: a copy of the volume while the container is stopped.
  const backup = `${dataDir}-backup`
  // Postgres refuses a folder that is not its user's.
  execFileSync('cp', ['--archive', dataDir, backup])
  await rm(dataDir, { recursive: true })
  await rename(backup, dataDir)
  const restored = await startTidegate({ dataDir, env })
  expect(restored.credentials.live).toEqual(first.credentials.live)
  const again = await fetch(`${restored.baseUrl}/v1/sessions`, { headers: { authorization } })
  expect(JSON.parse(await again.text()).data).toEqual(data)
  expect(await simulate()).toMatchObject({ code: 0 })
  expect(await restored.stop()).toBe(0)
}, 150_000)

it('tidegate dev refuses the records of a pre-release, and says what to do', async () => {
  const server = await startTidegate({ dataDir: preRelease })
  // Schema id 77 was given to a version that no release has.
  await change(
    preRelease,
    `update tidegate.projection_builds set version = version - 1 where projection = 'organizations';
     update tidegate_log.records set value = overlay(value placing '\\x0000004d' from 2 for 4)
       where topic = 'tidegate.organizations.v1'`,
  )
  await server.stop()
  await expect(startTidegate({ dataDir: preRelease })).rejects.toThrow(
    /tidegate\.organizations\.v1\/\d+ offset \d+: .*written by a pre-release; delete the data directory/,
  )
}, 90_000)
