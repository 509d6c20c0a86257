import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sortMembers } from '../../../infra/text.ts'
import { modelId, standardModel } from '../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'

it('model and catalogue list the same signals in the same order', () => {
  expect(Object.keys(standardModel.signals)).toEqual(signalCatalogue.map(({ slug }) => slug))
})

// Decisions refer to a model by its version, so increment `version` with each change.
it('the standard model has not changed without a new version', () => {
  expect(modelId(standardModel)).toBe('tidegate-6')
  expect(hash('sha256', JSON.stringify(sortMembers(standardModel)))).toBe(
    'a57a4ef9f0e309a336bd3b7723d933748e6485698af49739aecd0394d0bb6407',
  )
})

it('the id of another model depends on its content, not on the order of members', () => {
  const { caps, ...rest } = standardModel
  expect(modelId({ caps, ...rest })).toBe('tidegate-6')
  const other = { ...standardModel, caps: { ...caps, weak: 30 } }
  expect(modelId(other)).toMatch(/^mdl_[0-9a-f]{12}$/)
  const { name, ...named } = other
  expect(modelId({ ...named, name })).toBe(modelId(other))
  expect(modelId({ ...other, caps: { ...caps, weak: 31 } })).not.toBe(modelId(other))
})

it('ignores signals that the model lacks', () => {
  fc.assert(
    fc.property(
      fc.subarray(Object.keys(standardModel.signals)),
      fc.boolean(),
      (signals, hasSnapshot) => {
        const known = scoreOf(standardModel, { signals, hasSnapshot })
        expect(
          scoreOf(standardModel, { signals: [...signals, 'of_another_release'], hasSnapshot }),
        ).toEqual(known)
      },
    ),
  )
})
