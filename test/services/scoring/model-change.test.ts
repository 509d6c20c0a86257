import { describe, expect, test } from 'vitest'
import type { ScoringModelRow } from '../../../projections/policies/tables.ts'
import {
  decideRevert,
  decideSwitch,
  type ModelState,
} from '../../../services/scoring/model/decide.ts'
import { modelInForce, scheduledModel } from '../../../services/scoring/model/in-force.ts'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { organization, organizationId, refusal } from '../organizations/fixtures.ts'

const strict: ScoringModel = {
  ...standardModel,
  name: 'strict',
  caps: { ...standardModel.caps, trust: 0 },
}
const mild: ScoringModel = {
  ...standardModel,
  name: 'mild',
  caps: { ...standardModel.caps, weak: 20 },
}
const standardId = 'tidegate-6'

/** The n-th change on the log. */
function changed(n: number, model: ScoringModel | null, effective_at: number): ScoringModelRow {
  const isStandard = model === standardModel
  return {
    event_id: `evt_${n}`,
    log_offset: n,
    organization_id: null,
    model_id: model && modelId(model),
    document: model && !isStandard ? JSON.stringify(model) : null,
    effective_at,
    reason: 'tried',
    changed_at: effective_at - 30_000,
  }
}

const now = 1_000_000
const command = { reason: 'more bots come through', eventId: 'evt_new', now }
const nothing = { own: [], defaults: [] }
const ofAcme = (changes: Partial<ModelState['changes']> = {}): ModelState => ({
  organization,
  changes: { ...nothing, ...changes },
})
const withDefaults = (...defaults: ScoringModelRow[]): ModelState => ({
  organization: null,
  changes: { own: [], defaults },
})
type Decided = ReturnType<typeof decideRevert>
const targetsOf = (decided: Decided) =>
  decided.map(({ event: { data } }) => 'model_id' in data && [data.model_id, data.effective_at])

describe('the model of an organization', () => {
  test('is the standard model, then the default model, then its own', () => {
    const defaults = [changed(1, strict, 100)]
    const own = [changed(2, mild, 200)]
    const at = (moment: number) => {
      const { change, since } = modelInForce({ own, defaults }, moment)
      return [change?.model_id, since]
    }
    expect(at(99)).toEqual([undefined, null])
    expect(at(100)).toEqual([modelId(strict), 100])
    expect(at(199)).toEqual([modelId(strict), 100])
    expect(at(200)).toEqual([modelId(mild), 200])
  })

  test('is the default model again after its own is removed', () => {
    const changes = {
      defaults: [changed(1, strict, 100)],
      own: [changed(2, mild, 200), changed(3, null, 300)],
    }
    expect(modelInForce(changes, 300)).toMatchObject({ change: { event_id: 'evt_1' }, since: 300 })
  })

  test('follows the newest change, which replaces a scheduled one', () => {
    const changes = { own: [changed(1, strict, 500), changed(2, mild, 200)], defaults: [] }
    expect([199, 200, 500].map((at) => modelInForce(changes, at).change?.event_id)).toEqual([
      undefined,
      'evt_2',
      'evt_2',
    ])
    expect(scheduledModel(changes, 100)).toMatchObject({
      change: { event_id: 'evt_2' },
      since: 200,
    })
    expect(scheduledModel(changes, 200)).toBeUndefined()
  })

  test('ignores changes of the default model if it has its own', () => {
    const changes = { own: [changed(1, mild, 100)], defaults: [changed(2, strict, 200)] }
    expect(scheduledModel(changes, 150)).toBeUndefined()
    expect(scheduledModel({ ...changes, own: [] }, 150)).toMatchObject({ since: 200 })
  })
})

describe('a switch', () => {
  test('stores the whole model, effective as soon as all processes have read it', () => {
    const [decided] = decideSwitch(ofAcme(), {
      model: strict,
      ...command,
      reason: '  more bots come through ',
    })
    expect(decided?.event).toEqual({
      type: 'ScoringModelChanged',
      data: {
        event_id: 'evt_new',
        organization_id: organizationId,
        model_id: modelId(strict),
        document: JSON.stringify(strict),
        effective_at: now + 30_000,
        reason: 'more bots come through',
        changed_at: now,
      },
    })
  })

  test('to the standard model stores no document, so it follows releases', () => {
    const state = withDefaults(changed(1, strict, 100))
    const [decided] = decideSwitch(state, { model: { ...standardModel }, ...command })
    expect(decided?.event.data).toMatchObject({
      organization_id: null,
      model_id: standardId,
      document: null,
    })
  })

  test.each([
    ['the standard model, if there was no change', ofAcme(), standardModel],
    ['its own model', ofAcme({ own: [changed(1, strict, 100)] }), strict],
    ['the default model', ofAcme({ defaults: [changed(1, strict, 100)] }), strict],
    ['a model that is scheduled earlier', withDefaults(changed(1, strict, now + 9)), strict],
  ])('to the current model makes no event: %s', (_, state, model) => {
    expect(decideSwitch(state, { model, ...command })).toEqual([])
  })

  const ownOnes = (...own: ScoringModelRow[]) => ofAcme({ own })

  test.each([
    ['back from a scheduled model', ownOnes(changed(1, strict, now + 99)), standardModel],
    ['to a model that is scheduled later', ownOnes(changed(1, strict, now + 30_001)), strict],
    ['to an earlier model of its own', ownOnes(changed(1, strict, 1), changed(2, mild, 2)), strict],
  ])('is possible %s', (_, state, model) => {
    expect(targetsOf(decideSwitch(state, { model, ...command }))).toEqual([
      [modelId(model), now + 30_000],
    ])
  })

  test('throws 422 with both fields if the time is too soon and the reason is blank', () => {
    const asked = { model: strict, ...command }
    const bad = { ...asked, effectiveAt: now + 29_999, reason: ' ' }
    const { status, details } = refusal(() => decideSwitch(ofAcme(), bad))
    expect([status, details?.fields]).toMatchObject([
      422,
      [{ name: 'effective_at' }, { name: 'reason' }],
    ])
    const ofLength = (length: number) => ({ ...asked, reason: 'x'.repeat(length) })
    expect(refusal(() => decideSwitch(ofAcme(), ofLength(201))).status).toBe(422)
    const good = { ...ofLength(200), effectiveAt: now + 30_000 }
    expect(decideSwitch(ofAcme(), good)).toHaveLength(1)
  })

  test('throws 404 if the organization does not exist', () => {
    const unknown = { ...ofAcme(), organization: undefined }
    expect(refusal(() => decideSwitch(unknown, { model: strict, ...command })).status).toBe(404)
  })
})

describe('a revert', () => {
  const [first, second] = [changed(1, strict, 1), changed(2, mild, 2)]
  const toCome = changed(2, mild, now + 99)

  test.each([
    ['to the previous model', withDefaults(first, second), modelId(strict)],
    ['to the standard model', withDefaults(first), standardId],
    ['to the default model', ofAcme({ own: [first], defaults: [second] }), null],
    ['of a revert', withDefaults(first, second, changed(3, strict, 3)), modelId(mild)],
    ['of a scheduled change', withDefaults(first, toCome), modelId(strict)],
  ])('%s', (_, state, expected) => {
    expect(targetsOf(decideRevert(state, command))).toEqual([[expected, now + 30_000]])
  })

  test('stores the document of the previous model', () => {
    const [decided] = decideRevert(withDefaults(first, second), command)
    expect(decided?.event.data).toMatchObject({ document: JSON.stringify(strict) })
  })

  test('throws 409 if there is no earlier model', () => {
    const state = ofAcme({ defaults: [first] })
    const message = 'There is no earlier model to go back to.'
    expect(refusal(() => decideRevert(state, command))).toMatchObject({ status: 409, message })
  })
})
