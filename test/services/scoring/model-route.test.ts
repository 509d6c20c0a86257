import { afterAll, expect, test } from 'vitest'
import { createScoreExplainer } from '../../../services/scoring/explain/score.ts'
import { switchModel } from '../../../services/scoring/model/commands.ts'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { parseCustomModel } from '../../../services/scoring/model/parse-model.ts'
import { startApi } from '../../support/api.ts'
import { sessionScored } from '../../support/session-scored.ts'

const api = await startApi()
afterAll(() => api.stop())

const mild: ScoringModel = {
  ...standardModel,
  name: 'mild',
  caps: { ...standardModel.caps, weak: 20 },
}
const modelOf = async (key: string) => (await api.send({ url: '/v1/scoring/model', key })).body.data

test('the returned document is a valid custom model', async () => {
  const { document } = await modelOf((await api.organization()).key)
  expect(parseCustomModel(JSON.stringify(document))).toEqual(standardModel)
})

test('a change is `next` until it takes effect, and only for its organization', async () => {
  const { organizationId, key } = await api.organization()
  const other = await api.organization()
  const command = { organizationId, reason: 'fewer false alarms', model: mild }
  const changed = await switchModel(api.deps, command)
  const effective_at = new Date(changed?.effectiveAt ?? 0).toISOString()
  const expected = { id: modelId(mild), is_standard: false, effective_at, document: mild }
  expect(await modelOf(key)).toMatchObject({ id: 'tidegate-6', next: expected })
  api.now.ms += 30_000
  expect(await modelOf(key)).toMatchObject({ ...expected, next: null })
  expect(await modelOf(other.key)).toMatchObject({ id: 'tidegate-6', next: null })
})

test('a score is explained only with the model that decided, even after later changes', async () => {
  const { organizationId } = await api.organization()
  const explain = createScoreExplainer(api.pool)
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
    await switchModel(api.deps, { organizationId, reason: 'tried', model })
  const { steps } = await explain(decision)
  expect(steps?.at(-1)).toMatchObject({ kind: 'weak_limit', bound: 20, total: 20 })
  expect((await explain({ ...decision, risk_score: 21 })).steps).toBeNull()
  expect((await explain({ ...decision, model: 'mdl_0123456789ab' })).steps).toBeNull()
})
