import { expect, test } from 'vitest'
import {
  nextStepFor,
  type TakenStep,
} from '../../../../services/webhooks/dispatch/delivery-mode.ts'

type TakenState = Parameters<typeof nextStepFor>[0]
const ready: TakenState = { mode: undefined, isTooLate: false, isReadable: true }

test.each<[string, { given: Partial<TakenState>; step: TakenStep }]>([
  ['can be sent', { given: {}, step: 'send' }],
  ['the read models lack', { given: { isReadable: false }, step: 'defer' }],
  ['was taken too late', { given: { isTooLate: true }, step: 'requeue' }],
  [
    'was taken too late and the read models lack',
    { given: { isTooLate: true, isReadable: false }, step: 'requeue' },
  ],
  ['is being sent here', { given: { mode: 'sending' }, step: 'ignore' }],
  [
    'is being recorded here, and taken too late',
    { given: { mode: 'recording', isTooLate: true }, step: 'ignore' },
  ],
])('given a taken delivery that %s', (_, { given, step }) => {
  expect(nextStepFor({ ...ready, ...given })).toBe(step)
})
