import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import type { Rehearsal } from '../../services/cli/rescore/rehearse.ts'
import { modelId, type ScoringModel, standardModel } from '../../services/scoring/model/model.ts'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { readAs, visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type ModelDocument, plainScore, type ScoredRow } from '../support/plain-score.ts'

interface Decided extends ScoredRow {
  session_id: string
  verdict: string
  risk_score: number
  model: string
}

const standard = modelId(standardModel)
const agents = ['', ' Electron/30.0.0', ' HeadlessChrome/141.0.0.0']

/** Every other model than the standard one that tells these sessions apart from it. */
function otherModel(sessions: Decided[]): ScoringModel {
  const fired = new Set(sessions.flatMap(({ signals }) => signals))
  const signals = Object.entries(standardModel.signals).map(([slug, signal]) => {
    const isChanged = fired.has(slug) && signal.role === 'risk' && signal.strength !== 'definitive'
    return [slug, { ...signal, points: isChanged ? 95 : signal.points }]
  })
  return { ...standardModel, name: 'acme', signals: Object.fromEntries(signals) }
}

const plainly = (document: ModelDocument, sessions: Decided[]) =>
  sessions.map((session) => plainScore(document, session))

const decisionsOf = (sessions: Decided[]) =>
  sessions.map(({ verdict, risk_score }) => ({ verdict, risk_score }))

describe('a model of an organization', () => {
  let cluster: Cluster
  let folder: string
  let device = 0

  beforeAll(async () => {
    cluster = await startCluster({
      log: 'postgres',
      processes: 2,
      env: { TRUSTED_PROXIES: '127.0.0.0/8' },
    })
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-rescore-'))
  }, 120_000)
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true })
    await cluster?.stop()
  })

  /** A visit of each kind by a new device, each at one server or the other. */
  async function visits(): Promise<Decided[]> {
    const { owner, baseUrls, settings } = cluster
    const pool = createPool({ url: String(settings.DATABASE_URL) })
    try {
      const made: Decided[] = []
      for (const agent of agents) {
        const baseUrl = baseUrls[++device % baseUrls.length] ?? ''
        // Visits from one address would be a mass run.
        const address = `198.18.7.${device % 250}`
        const { sessionId } = await visitAs(device, { baseUrl, owner, agent, address })
        const { rows } = await pool.query<Decided>(
          `select session_id, verdict, risk_score, model, signals, has_snapshot from read.sessions
             where session_id = $1`,
          [sessionId],
        )
        made.push(...rows)
      }
      return made
    } finally {
      await pool.end()
    }
  }

  /** As the API serves it. */
  async function documentOf(model: string): Promise<ModelDocument> {
    const [baseUrl = ''] = cluster.baseUrls
    const reader = { baseUrl, owner: cluster.owner }
    const served = (await readAs(reader, '/v1/scoring/model')) as {
      id: string
      document: ModelDocument
    }
    expect(served.id).toBe(model)
    return served.document
  }

  const decidedBy = (model: string) =>
    eventually(
      async () => {
        const made = await visits()
        expect(made.map((one) => one.model)).toEqual(agents.map(() => model))
        return made
      },
      { timeoutMs: 120_000, intervalMs: 2000 },
    )

  it('decides as it was rehearsed once it is switched to, and as before once it is switched back', async () => {
    const { slug } = cluster.owner
    const before = await visits()
    const file = path.join(folder, 'model.json')
    await writeFile(file, JSON.stringify(otherModel(before)))
    const args = ['rescore', '--organization', slug]
    // Nobody needs a key to try it.
    const { TIDEGATE_MASTER_KEYS: _, ...settings } = cluster.settings
    const page = path.join(folder, 'report.html')
    const tried = await cli([...args, '--model', file, '--json', '--html', page], settings)
    const rehearsal: Rehearsal & { model: string } = JSON.parse(tried.stdout).data
    expect(rehearsal).toMatchObject({
      sessions: 3,
      check: { followed: 3, differed: 0, unknown_models: {} },
    })
    expect(await readFile(page, 'utf8')).toContain(`Model ${rehearsal.model}`)
    const after = before.map(({ session_id, verdict, risk_score }) => {
      const changed = rehearsal.most_changed.find((one) => one.session_id === session_id)
      if (!changed) return { verdict, risk_score }
      return { verdict: changed.verdict_after, risk_score: changed.risk_score_after }
    })
    expect(after).not.toEqual(decisionsOf(before))
    // What was decided and what would be follow from the rows and the documents alone, whoever computes it.
    expect(plainly(await documentOf(standard), before)).toEqual(decisionsOf(before))
    expect(plainly(JSON.parse(await readFile(file, 'utf8')), before)).toEqual(after)

    const switched = await cluster.cli([
      ...args,
      '--model',
      file,
      '--switch',
      '--reason',
      'more bots',
    ])
    expect(switched.stdout).toMatch(
      new RegExp(
        `sessions .*get another verdict[\\s\\S]+From .* on ${rehearsal.model} decides for ${slug}`,
      ),
    )
    const made = await decidedBy(rehearsal.model)
    expect(made.map(({ signals }) => signals)).toEqual(before.map(({ signals }) => signals))
    expect(decisionsOf(made)).toEqual(after)
    expect(plainly(await documentOf(rehearsal.model), made)).toEqual(decisionsOf(made))

    const printed = await cli([...args, '--print-model'], settings)
    expect(JSON.parse(printed.stdout)).toEqual(JSON.parse(await readFile(file, 'utf8')))
    const again = await cli([...args, '--model', file, '--json'], settings)
    expect(JSON.parse(again.stdout).data.check).toMatchObject({ differed: 0, unknown_models: {} })

    const back = await cluster.cli([...args, '--back', '--reason', 'too many people'])
    expect(back.stdout).toMatch(/^From .* on everybody's model decides/)
    expect(decisionsOf(await decidedBy(standard))).toEqual(decisionsOf(before))
    const audit = await cluster.cli(['audit', '--organization', slug])
    expect(audit.stdout).toMatch(
      /ScoringModelChanged[^\n]+operator rescore --back[\s\S]+operator rescore --switch/,
    )
  }, 300_000)

  it('is switched to only where it is said whose it is, and why', async () => {
    const run = async (...flags: string[]) => (await cluster.cli(['rescore', ...flags])).stderr
    expect(await run('--model', 'm.json', '--switch', '--reason', 'x')).toContain(
      'error: whose model?',
    )
    expect(await run('--back', '--everybody')).toContain('error: --reason is missing.')
    expect(await run()).toMatch(/error: --model is missing: ".*rescore --print-model > model.json"/)
  }, 60_000)
})
