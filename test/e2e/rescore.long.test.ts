import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Rehearsal } from '../../services/cli/rescore/rehearse.ts'
import { modelId, type ScoringModel, standardModel } from '../../services/scoring/model/model.ts'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type ModelDocument, plainScore, type ScoredRow } from '../support/plain-score.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

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
  const folder = temporaryFolder('rescore')
  let cluster: Cluster
  let device = 0

  beforeAll(async () => {
    cluster = await startCluster({ processes: 2, env: { TRUSTED_PROXIES: '127.0.0.0/8' } })
  }, 120_000)
  afterAll(() => cluster?.stop())

  /** A visit of each kind by a new device, each at one server or the other. */
  async function visits(): Promise<Decided[]> {
    const made: Decided[] = []
    for (const agent of agents) {
      const baseUrl = cluster.baseUrls[++device % 2] ?? ''
      // Visits from one address would be a mass run.
      const address = `198.18.7.${device % 250}`
      const visit = { agent, address }
      const { sessionId } = await visitAs({ baseUrl, owner: cluster.owner }, device, visit)
      const { rows } = await cluster.pool.query<Decided>(
        `select session_id, verdict, risk_score, model, signals, has_snapshot from read.sessions
         where session_id = $1`,
        [sessionId],
      )
      made.push(...rows)
    }
    return made
  }

  /** As the API serves it. */
  async function documentOf(model: string): Promise<ModelDocument> {
    const served = await cluster.read<{ id: string; document: ModelDocument }>('/v1/scoring/model')
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
    // The old and new decisions can be recomputed from the rows and the model documents alone.
    expect(plainly(await documentOf(standard), before)).toEqual(decisionsOf(before))
    expect(plainly(JSON.parse(await readFile(file, 'utf8')), before)).toEqual(after)

    const switching = ['--model', file, '--switch', '--reason', 'more bots']
    const switched = await cluster.cli([...args, ...switching])
    const decides = `From .*, ${slug} uses ${rehearsal.model}`
    expect(switched.stdout).toMatch(
      new RegExp(`sessions .*would change verdict[\\s\\S]+${decides}`),
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
    expect(back.stdout).toMatch(/^From .*, .* uses everybody's model/)
    expect(decisionsOf(await decidedBy(standard))).toEqual(decisionsOf(before))
    const audit = await cluster.cli(['audit', '--organization', slug])
    expect(audit.stdout).toMatch(
      /ScoringModelChanged[^\n]+operator rescore --back[\s\S]+operator rescore --switch/,
    )
  }, 300_000)
})
