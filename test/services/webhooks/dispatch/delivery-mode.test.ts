import { expect, test } from 'vitest'
import {
  stepOf,
  type TakenState,
  type TakenStep,
} from '../../../../services/webhooks/dispatch/delivery-mode.ts'

const ready: TakenState = { mode: undefined, isTooLate: false, isShown: true }

test.each<[string, { given: Partial<TakenState>; step: TakenStep }]>([
  ['can be sent', { given: {}, step: 'send' }],
  ['the read models do not show', { given: { isShown: false }, step: 'hide' }],
  ['was taken too late', { given: { isTooLate: true }, step: 'putBack' }],
  ['was taken too late and is not shown', { given: { isTooLate: true, isShown: false }, step: 'putBack' }],
  ['is being sent here', { given: { mode: 'sending' }, step: 'ignore' }],
  [
    'is being recorded here, and taken too late',
    { given: { mode: 'recording', isTooLate: true }, step: 'ignore' },
  ],
])('given a taken delivery that %s', (_, { given, step }) => {
  expect(stepOf({ ...ready, ...given })).toBe(step)
})
