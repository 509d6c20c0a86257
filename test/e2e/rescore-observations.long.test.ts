import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, inject } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import { readEvents } from '../../infra/event-store/read-events.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { verdicts } from '../../services/cli/rescore/moves.ts'
import type { Rehearsal } from '../../services/cli/rescore/rehearse.ts'
import { openLog, topicSpecs } from '../../services/server/dependencies.ts'
import { cli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { noSkips } from '../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { root } from '../support/test-projects.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const brokers = inject('kafkaBrokers') ?? ''
const prefix = `rehearsed${Date.now()}.`
// Five thousand take ten minutes, which only REHEARSED_SESSIONS=5000 asks for.
const ofEmbedded = Number(process.env.REHEARSED_SESSIONS ?? 1000)
const logs = [
  { name: 'the embedded log', needing: needs(), sessions: ofEmbedded, env: {} },
  {
    ...{ name: 'Kafka', needing: needs('kafka'), sessions: 200 },
    env: { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: prefix },
  },
]

// A signal about the session itself, in the release that is tried.
const rule = {
  file: 'services/scoring/signals/attestation.ts',
  before:
    "fires: (facts) => facts.platform !== 'web' && facts.attestation?.status !== 'valid' && !isInvalid(facts),",
  after: "fires: ({ platform }) => platform === 'ios',",
}

/** A copy of this program with another rule; returns its main file. */
async function changedRelease(folder: string): Promise<string> {
  for (const name of ['services', 'infra', 'projections', 'schemas', 'docs', 'package.json'])
    await cp(path.join(root, name), path.join(folder, name), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const file = path.join(folder, rule.file)
  const source = await readFile(file, 'utf8')
  expect(source.split(rule.before)).toHaveLength(2)
  await writeFile(file, source.replace(rule.before, rule.after))
  return path.join(folder, 'services/cli/main.ts')
}

type Decided = Pick<SessionScored, 'session_id' | 'event_id' | 'verdict' | 'risk_score'> & {
  signals: string[]
}

describe.each(logs)('an update on $name', ({ needing, sessions, env: ofLog }) => {
  let database: TestDatabase
  let folder: string
  let env: Record<string, string>
  let server: RunningTidegate | undefined

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-rehearsed-'))
    // What is scored once more comes in the order in which it came.
    env = { ...ofLog, DATABASE_URL: database.url, TOPIC_PARTITIONS: '1' }
  }, 60_000)

  afterAll(async () => {
    await server?.stop()
    if (brokers) await deleteTopics(brokers.split(','), prefix)
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  }, 60_000)

  const dataDir = () => path.join(folder, 'data')

  async function withLog<T>(work: (log: Awaited<ReturnType<typeof openLog>>) => Promise<T>): Promise<T> {
    const logger = pino({ level: 'silent' })
    const log = await openLog({ config: readConfig(env), pool: database.pool, url: database.url, logger })
    return work(log).finally(() => log.close())
  }

  const lastOffset = () =>
    withLog(async (log) => (await log.endPositions('tidegate.sessions.v1'))[0]?.offset ?? 0)

  /** Final decisions on the log from an offset on, each once, in the order of their sessions. */
  async function decidedFrom(offset: number): Promise<Decided[]> {
    const found = new Map<string, Decided>()
    const source = { codec: createCodec(), skips: noSkips }
    await withLog((log) =>
      readEvents(
        { ...source, log },
        {
          topic: 'tidegate.sessions.v1',
          from: () => offset,
          handle(events) {
            for (const { type, data } of events) {
              if (type !== 'SessionScored' || data.is_provisional) continue
              const { session_id, event_id, verdict, risk_score } = data
              const signals = data.signals_fired.map(({ signal }) => signal)
              found.set(session_id, { session_id, event_id, verdict, risk_score, signals })
            }
          },
        },
      ),
    )
    return [...found.values()].sort((one, other) => (one.session_id < other.session_id ? -1 : 1))
  }

  async function rehearse(program?: string): Promise<Rehearsal> {
    const settings = { ...env, DATA_DIR: dataDir(), ...(program !== undefined && { PROGRAM: program }) }
    const { code, stdout, stderr } = await cli(['rescore', '--observations', '--json'], settings)
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout).data
  }

  /** All that Postgres and the log have, as numbers that change with it. */
  async function contents() {
    const { pool } = database
    const { rows } = await pool.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
    )
    const tables: Record<string, unknown> = {}
    for (const { name } of rows) {
      const text = `select count(*), sum(hashtextextended(t::text, 0)) as sum from ${name} t`
      tables[name] = (await pool.query(text)).rows[0]
    }
    const topics = topicSpecs(readConfig(env)).map(({ topic }) => topic)
    const ends = await withLog((log) => Promise.all(topics.map((topic) => log.endPositions(topic))))
    return { tables, ends: ends.flat() }
  }

  /** Scoring begins anew with its first record, and knows nobody. */
  async function scoreAgain(program: string): Promise<void> {
    await database.pool.query(`update scoring.offsets set next_offset = 0;
      truncate scoring.sessions, scoring.visitors, scoring.visitor_keys, scoring.links`)
    server = await startTidegate({ dataDir: dataDir(), env: { ...env, PROGRAM: program } })
  }

  needing.it(
    `does what its rehearsal on ${sessions} sessions said`,
    async () => {
      const program = await changedRelease(folder)
      server = await startTidegate({ dataDir: dataDir(), env })
      const load = ['simulate', '--sessions', String(sessions), '--concurrency', '32', '--seed', 'update']
      expect(await cli(load, { DATA_DIR: dataDir() })).toMatchObject({ code: 0 })

      const same = await rehearse()
      expect(same).toMatchObject({ sessions, moved: 0, most_changed: [], check: { differed: 0 } })
      expect(same.score_changes).toEqual([{ by: 0, sessions }])
      expect(same.observations).toMatchObject({
        fires: [],
        not_judged: { erased: 0, expired: 0, incomplete: 0 },
      })

      await server.stop()
      const before = await decidedFrom(0)
      expect(before).toHaveLength(sessions)
      const untouched = await contents()
      const foretold = await rehearse(program)
      expect(await contents()).toEqual(untouched)

      const end = await lastOffset()
      await scoreAgain(program)
      const after = await eventually(
        async () => {
          const decided = await decidedFrom(end)
          expect(decided).toHaveLength(sessions)
          return decided
        },
        { timeoutMs: 300_000, intervalMs: 2000 },
      )
      await server?.stop()
      server = undefined
      expect(after.map(({ event_id }) => event_id)).toEqual(before.map(({ event_id }) => event_id))

      const pairs = before.flatMap((one, i) => (after[i] ? [{ before: one, after: after[i] }] : []))
      const counted = (of: (pair: (typeof pairs)[number]) => boolean) => pairs.filter(of).length
      for (const was of verdicts)
        for (const is of verdicts)
          expect({ was, is, sessions: foretold.moves[was][is] }).toEqual({
            ...{ was, is },
            sessions: counted((pair) => pair.before.verdict === was && pair.after.verdict === is),
          })
      expect(foretold.moved).toBeGreaterThan(sessions / 50)
      for (const { by, sessions: some } of foretold.score_changes)
        expect({
          by,
          some: counted((pair) => pair.after.risk_score - pair.before.risk_score === by),
        }).toEqual({
          ...{ by, some },
        })
      const stopped = (slug: string) => (pair: (typeof pairs)[number]) =>
        pair.before.signals.includes(slug) && !pair.after.signals.includes(slug)
      expect(foretold.observations?.fires).toEqual([
        { signal: 'app_unattested', newly: 0, no_longer: counted(stopped('app_unattested')) },
      ])
      expect(foretold.most_changed).toHaveLength(
        Math.min(
          100,
          counted((p) => p.before.risk_score !== p.after.risk_score),
        ),
      )
      const byId = new Map(after.map((one) => [one.session_id, one]))
      for (const { session_id, verdict_after, risk_score_after } of foretold.most_changed)
        expect(byId.get(session_id)).toMatchObject({ verdict: verdict_after, risk_score: risk_score_after })
    },
    1_800_000,
  )
})
