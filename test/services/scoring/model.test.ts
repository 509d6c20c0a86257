import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sortedMembers } from '../../../infra/text.ts'
import { modelId, standardModel } from '../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'

it('the document and the catalogue name the same signals, in one order', () => {
  expect(Object.keys(standardModel.signals)).toEqual(signalCatalogue.map(({ slug }) => slug))
})

// Decisions of all releases name it, so what has once been called so never changes: count `version` up.
it('the standard model of a version is always the same', () => {
  expect(modelId(standardModel)).toBe('tidegate-6')
  expect(hash('sha256', JSON.stringify(sortedMembers(standardModel)))).toBe(
    'a57a4ef9f0e309a336bd3b7723d933748e6485698af49739aecd0394d0bb6407',
  )
})

it('another model is named by what it says, whatever the order of its members', () => {
  const { caps, ...rest } = standardModel
  expect(modelId({ caps, ...rest })).toBe('tidegate-6')
  const other = { ...standardModel, caps: { ...caps, weak: 30 } }
  expect(modelId(other)).toMatch(/^mdl_[0-9a-f]{12}$/)
  const { name, ...named } = other
  expect(modelId({ ...named, name })).toBe(modelId(other))
  expect(modelId({ ...other, caps: { ...caps, weak: 31 } })).not.toBe(modelId(other))
})

it('a signal that the model does not know counts nothing', () => {
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
