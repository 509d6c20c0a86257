import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../infra/local/embedded-postgres.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { codeBlock } from '../support/code-block.ts'
import { walFiles } from '../support/dump.ts'
import { placesOf } from '../support/people.ts'
import { silent } from '../support/projections.ts'

let folder: string
let postgres: EmbeddedPostgres

// Of its own: the one of the test run keeps its write-ahead log.
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-erased-'))
  await chmod(folder, 0o755)
  postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), logger: silent })
}, 60_000)
afterAll(async () => {
  await postgres?.stop()
  await rm(folder, { recursive: true, force: true })
})

test('what was deleted is in no file of the write-ahead log once each was used again', async () => {
  const pool = createPool({ url: postgres.url })
  const holding = async () => {
    const found: string[] = []
    for await (const file of walFiles(pool)) found.push(...placesOf(['a marked person'], [file]))
    return found
  }
  await pool.query('create table people (said text)')
  // Several files, some of which are kept to be used again.
  for (let n = 0; n < 3; n++) {
    await pool.query(
      "insert into people select repeat('a marked person', 60) from generate_series(1, 20000)",
    )
    await pool.query('checkpoint')
  }
  await pool.query('truncate people')
  expect((await holding()).length).toBeGreaterThan(1)
  const block = await codeBlock('guide/privacy.md', 'wal: sh')
  const statements = [...block.matchAll(/-c '([^']*)'/g)].flatMap(
    ([, statement]) => statement ?? [],
  )
  expect(statements).toHaveLength(4)
  for (const statement of statements) await pool.query(statement)
  expect(await holding()).toEqual([])
  await pool.end()
}, 120_000)
