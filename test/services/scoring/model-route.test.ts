import { afterAll, beforeAll, expect, test } from 'vitest'
import { switchModel } from '../../../services/scoring/model/commands.ts'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { parseModel } from '../../../services/scoring/model/own-model.ts'
import { scoringModelRoutes } from '../../../services/scoring/model/routes.ts'
import { type Organizations, startOrganizations } from '../organizations/support.ts'

let world: Organizations

beforeAll(async () => {
  world = await startOrganizations()
  scoringModelRoutes(world.app, world.context)
})
afterAll(() => world.stop())

const url = '/v1/scoring/model'
const mild: ScoringModel = { ...standardModel, name: 'mild', caps: { ...standardModel.caps, weak: 20 } }

test('the standard model is served, and is a model of its own if it is sent back', async () => {
  const { key } = await world.organization()
  const { status, body } = await world.send({ url, key })
  expect([status, body.data]).toEqual([
    200,
    {
      object: 'scoring_model',
      id: 'tidegate-5',
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
  expect(before.body.data).toMatchObject({ id: 'tidegate-5', next: { object: 'scoring_model', ...its } })
  world.now.ms += 30_000
  expect((await world.send({ url, key })).body.data).toMatchObject({ ...its, next: null })
  expect((await world.send({ url, key: other.key })).body.data).toMatchObject({
    id: 'tidegate-5',
    next: null,
  })
})
