import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RebuildReport } from '../../infra/event-store/rebuild.ts'
import { lockKey } from '../../infra/postgres/pool.ts'
import { startCli } from '../support/cli.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers } from '../support/hand.ts'
import { pastErasure, pastEvents } from '../support/past-events.ts'

const start = Date.UTC(2024, 0, 1)
const sessions = 1000
const perTurn = 40
const patient = { timeoutMs: 240_000 }

describe.each(clusterLogs())('a rebuild of sessions on %s', (log) => {
  let cluster: Cluster
  let pool: Cluster['pool']
  let written = 0
  let erased = 0
  let sent = 0

  beforeAll(async () => {
    cluster = await startCluster({ log, roles: 'projections,api' })
    ;({ pool } = cluster)
    // DDL commands of a rebuild wait for the advisory lock named after the command.
    await pool.query(`create function wait_at_gate() returns event_trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(hashtext(tg_tag)); end $$;
      create event trigger gates on ddl_command_start execute function wait_at_gate()`)
    for (; written < sessions; written += 250)
      await append(pastEvents(cluster.owner, { from: written, count: 250, start }))
    await caughtUp()
  }, 600_000)
  afterAll(() => cluster?.stop())

  async function append(events: Parameters<Cluster['append']>[0]): Promise<void> {
    await cluster.append(events)
    sent += events.length
  }

  /** More comes, also of what was read before the kill. */
  async function happen(): Promise<void> {
    await append([
      ...pastEvents(cluster.owner, { from: written, count: perTurn, start }),
      pastErasure(cluster.owner, 200 * erased + 3),
    ])
    written += perTurn
    erased += 1
    await caughtUp()
  }

  const offsetsOf = async (status: 'live' | 'building'): Promise<number> => {
    const { rows } = await pool.query<{ sum: number }>(
      `select coalesce(sum(next_offset), 0)::float8 as sum from tidegate.projection_offsets
       join tidegate.projection_builds using (projection, build) where projection = 'sessions' and status = $1`,
      [status],
    )
    return rows[0]?.sum ?? 0
  }

  const caughtUp = () => eventually(async () => expect(await offsetsOf('live')).toBe(sent), patient)

  /** Builds that have tables, and which is live. */
  async function builds(): Promise<{ build: number; status: string }[]> {
    const { rows } = await pool.query<{ build: number; status: string }>(
      `select build, status from tidegate.projection_builds join pg_namespace on nspname = schema_name
       where projection = 'sessions' order by build`,
    )
    return rows
  }

  /** All rows that readers see, but for what is made of them when nobody waits for it. */
  async function rowsSeen(): Promise<Record<string, unknown>> {
    const seen: Record<string, unknown> = {}
    const tables = ['sessions', 'decisions', 'visitors', 'visitor_sessions', 'session_marks']
    for (const table of tables) {
      const { rows } = await pool.query(
        `select count(*)::int as count, md5(string_agg(md5(t::text), '' order by md5(t::text))) as digest from read.${table} t`,
      )
      seen[table] = rows[0]
    }
    return seen
  }

  function begin(...flags: string[]) {
    const child = startCli(['rebuild', 'sessions', '--json', ...flags], cluster.settings)
    return {
      pid: child.pid,
      runs: () => expect([child.exitCode, child.signalCode]).toEqual([null, null]),
      async kill(): Promise<void> {
        child.kill('SIGKILL')
        await child.result
      },
      async failure(): Promise<string> {
        const { code, stdout } = await child.result
        expect(code).toBe(1)
        return stdout
      },
      async report(): Promise<RebuildReport> {
        const { code, stdout, stderr } = await child.result
        expect(code, `${stdout.slice(0, 4000)}${stderr}`).toBe(0)
        return JSON.parse(stdout)
      },
    }
  }

  /** Its connections are gone, so that the next one finds what they have left. */
  async function released(): Promise<void> {
    const key = lockKey('tidegate:rebuild:sessions')
    const { rows } = await pool.query(
      `select pg_try_advisory_xact_lock($1) as is_free, count(*)::int as waiting from pg_locks
       where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
      [key],
    )
    expect(rows[0]).toEqual({ is_free: true, waiting: 0 })
  }

  /** The processes that load for the command. */
  const workersOf = (pid: number | undefined): number[] =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => parentOf(name) === pid)
      .map(Number)

  /** Kills the command once its build has read so many records. */
  async function killAt(records: number): Promise<void> {
    const rebuild = begin('--workers', '2')
    await eventually(
      async () => {
        rebuild.runs()
        expect(await offsetsOf('building')).toBeGreaterThan(records)
      },
      { ...patient, intervalMs: 2 },
    )
    await rebuild.kill()
    await eventually(released, patient)
  }

  /**
   * Kills the command, or one of the processes that load for it, while `waiting` of them wait for a lock that somebody
   * holds.
   */
  async function killBefore(
    lock: string,
    { victim = 'command', waiting = 1 }: { victim?: 'command' | 'worker'; waiting?: number } = {},
  ): Promise<void> {
    const holder = await pool.connect()
    await holder.query(`select ${lock}`)
    const rebuild = begin('--workers', '2')
    await eventually(async () => {
      rebuild.runs()
      const { rows } = await pool.query(
        `select from pg_locks waiting join pg_locks held using (locktype, database, classid, objid, objsubid)
         where held.pid = pg_backend_pid() or held.pid = $1 and not waiting.granted and held.granted and locktype = 'advisory'`,
        [(await holder.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid],
      )
      expect(rows.length).toBeGreaterThanOrEqual(waiting)
    }, patient)
    const workers = workersOf(rebuild.pid)
    if (victim === 'command') await rebuild.kill()
    else {
      process.kill(workers[0] ?? 0, 'SIGKILL')
      expect(await rebuild.failure()).toMatch(/a rebuild worker exited with SIGKILL/)
    }
    const alive = () => workers.filter((pid) => existsSync(`/proc/${pid}`))
    await eventually(async () => expect(alive()).toEqual([]))
    holder.release(true)
    await eventually(released, patient)
  }

  // Loading a build holds its lock shared, and making its indexes alone.
  const keyOf = (build: number) => lockKey(`tidegate:build:sessions_b${build}`)
  const toLoad = (build: number) => `pg_advisory_lock(${keyOf(build)})`
  const toIndex = (build: number) => `pg_advisory_lock_shared(${keyOf(build)})`

  const beforeCommand = (tag: string) => `pg_advisory_lock(hashtext('${tag}'))`

  test('that is killed at any moment changes nothing that readers see, and the next one succeeds', async () => {
    const seed = randomInt(2 ** 32)
    console.log(`kills of a rebuild on ${log}: seed ${seed}`)
    const random = createNumbers(seed)
    const first = (await builds())[0]?.build ?? 0
    const live = { build: first, status: 'live' }
    const building = async () => (await builds()).filter(({ status }) => status === 'building')

    await killAt(random() * sent * 0.4)
    expect(await builds()).toEqual([live, { build: first + 1, status: 'building' }])
    await happen()
    await killBefore(toLoad(first + 2), { waiting: 2, victim: 'worker' })
    expect(await builds()).toEqual([live])
    await killBefore(toLoad(first + 3), { waiting: 2 })
    await happen()
    await killBefore(toIndex(first + 4))
    expect(await building()).toEqual([{ build: first + 4, status: 'building' }])
    await happen()
    await killBefore(`pg_advisory_lock_shared(${lockKey('tidegate:projection:sessions')})`)
    await happen()
    const seen = await rowsSeen()
    await killBefore(beforeCommand('CREATE VIEW'))
    expect(await builds()).toEqual([live, { build: first + 6, status: 'building' }])
    await killBefore(beforeCommand('DROP SCHEMA'))
    expect((await builds()).map(({ status }) => status)).toEqual(['live', 'building'])
    expect(await rowsSeen()).toEqual(seen)

    const report = await begin('--workers', '3').report()
    expect(report).toMatchObject({ equal: true, switched: true })
    expect(await builds()).toEqual([{ build: report.build, status: 'live' }])
    expect(await rowsSeen()).toEqual(seen)
    expect(seen).toMatchObject({ sessions: { count: written - erased } })
  }, 900_000)

  test('goes on where the database breaks off its connections', async () => {
    const rebuild = begin('--workers', '2')
    await eventually(
      async () => {
        rebuild.runs()
        expect(await offsetsOf('building')).toBeGreaterThan(0)
      },
      { ...patient, intervalMs: 2 },
    )
    const { rows } = await pool.query(
      `select count(pg_terminate_backend(pid))::integer as ended from pg_stat_activity
       where datname = current_database() and application_name <> 'test'`,
    )
    expect(rows[0].ended).toBeGreaterThan(0)
    expect(await rebuild.report()).toMatchObject({ equal: true, switched: true })
  }, 300_000)
})

const parentOf = (pid: string): number | undefined => {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])
  } catch {
    return undefined
  }
}
