import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import { createInstallation, type Installation, operator } from '../support/cluster.ts'
import { needs } from '../support/needs.ts'
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'

/** As its users set it where programs set something at connecting. */
const lenient =
  'ignore_startup_parameters = options, extra_float_digits, statement_timeout, idle_in_transaction_session_timeout'

let installation: Installation
beforeAll(async () => {
  installation = await createInstallation()
})
afterAll(() => installation.stop())

describe('a database without a pooler', () => {
  it.each(['', '-c search_path=read -c work_mem=5MB'])(
    'is taken, with options of its own as well: %s',
    async (options) => {
      const url = new URL(installation.settings.DATABASE_URL ?? '')
      if (options) url.searchParams.set('options', options)
      const pool = createPool({ url: url.href })
      await refusePooler(pool)
      const { rows } = await pool.query('show search_path')
      expect(rows).toEqual([{ search_path: options ? 'read' : '"$user", public' }])
      await pool.end()
    },
  )
})

needs('pgbouncer').describe('PgBouncer before the database', () => {
  const running: PgBouncer[] = []
  afterAll(() => Promise.all(running.map((bouncer) => bouncer.stop())))

  async function through(settings: string[]): Promise<string> {
    const bouncer = await startPgBouncer(installation.settings.DATABASE_URL ?? '', settings)
    running.push(bouncer)
    return bouncer.url
  }

  it.each([
    ['in transaction mode', ['pool_mode = transaction']],
    ['in transaction mode, ignoring what it does not know', ['pool_mode = transaction', lenient]],
    ['in session mode, ignoring what it does not know', ['pool_mode = session', lenient]],
  ])(
    'stops every start %s, and says what to do',
    async (_, settings) => {
      const { cli } = operator({ ...installation.settings, DATABASE_URL: await through(settings) })
      for (const args of [['serve', '--roles', 'api'], ['migrate']]) {
        const start = await cli(args)
        expect(start.code).toBe(1)
        const failure = JSON.parse(start.stdout)
        expect(failure).toMatchObject({
          level: 'fatal',
          msg: expect.stringMatching(
            /DATABASE_URL points to a connection pooler.*Point it to Postgres itself/,
          ),
        })
        expect(failure).not.toHaveProperty('hint')
      }
      expect(await cli(['org', 'list'])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('DATABASE_URL points to a connection pooler'),
      })
    },
    30_000,
  )

  it('in transaction mode serves who reads the views', async () => {
    const client = new pg.Client({ connectionString: await through(['pool_mode = transaction']) })
    await client.connect()
    expect((await client.query('select * from read.decisions')).rows).toEqual([])
    await client.end()
  })
})
