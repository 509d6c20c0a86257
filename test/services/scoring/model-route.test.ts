import { afterAll, beforeAll, expect, test } from 'vitest'
import { createScoreExplainer } from '../../../services/scoring/explain/score.ts'
import { switchModel } from '../../../services/scoring/model/commands.ts'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { parseModel } from '../../../services/scoring/model/own-model.ts'
import { scoringModelRoutes } from '../../../services/scoring/model/routes.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { type Organizations, startOrganizations } from '../organizations/support.ts'

let world: Organizations

beforeAll(async () => {
  world = await startOrganizations()
  scoringModelRoutes(world.app, world.context)
})
afterAll(() => world.stop())

const url = '/v1/scoring/model'
const mild: ScoringModel = {
  ...standardModel,
  name: 'mild',
  caps: { ...standardModel.caps, weak: 20 },
}

test('the standard model is served, and is a model of its own if it is sent back', async () => {
  const { key } = await world.organization()
  const { status, body } = await world.send({ url, key })
  expect([status, body.data]).toEqual([
    200,
    {
      object: 'scoring_model',
      id: 'tidegate-6',
      is_standard: true,
      effective_at: null,
      document: standardModel,
      next: null,
    },
  ])
  expect(parseModel(JSON.stringify(body.data.document))).toEqual(standardModel)
})

test('a change is the next one until its moment, and no other organization sees it', async () => {
  const { organizationId, key } = await world.organization()
  const other = await world.organization()
  const command = { organizationId, reason: 'fewer false alarms', model: mild }
  const changed = await switchModel(world.deps, command)
  const moment = new Date(changed?.effectiveAt ?? 0).toISOString()
  const its = { id: modelId(mild), is_standard: false, effective_at: moment, document: mild }
  const before = await world.send({ url, key })
  expect(before.body.data).toMatchObject({
    id: 'tidegate-6',
    next: { object: 'scoring_model', ...its },
  })
  world.now.ms += 30_000
  expect((await world.send({ url, key })).body.data).toMatchObject({ ...its, next: null })
  expect((await world.send({ url, key: other.key })).body.data).toMatchObject({
    id: 'tidegate-6',
    next: null,
  })
})

test('a score is explained by the model that decided, also after the next change, and by no other', async () => {
  const { organizationId } = await world.organization()
  const explain = createScoreExplainer(world.context.pool)
  const weak = Object.entries(mild.signals).filter(
    ([, { strength, role, floor }]) => floor === null && strength === 'weak' && role === 'risk',
  )
  const decision = sessionScored({
    organization_id: organizationId,
    has_snapshot: true,
    model: modelId(mild),
    risk_score: 20,
    signals_fired: weak.map(([signal, { points, floor: _, ...judged }]) => ({
      signal,
      ...judged,
      signal_score: points,
    })),
  })
  expect((await explain(decision)).steps).toBeNull()
  for (const model of [mild, standardModel])
    await switchModel(world.deps, { organizationId, reason: 'tried', model })
  const { steps } = await explain(decision)
  expect(steps?.at(-1)).toMatchObject({ kind: 'weak_limit', bound: 20, total: 20 })
  expect((await explain({ ...decision, risk_score: 21 })).steps).toBeNull()
  expect((await explain({ ...decision, model: 'mdl_0123456789ab' })).steps).toBeNull()
})
