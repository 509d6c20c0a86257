import { expect, test } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import { createFailedEnds, type End } from '../../../services/gate/time-outs.ts'

const end = (n: number, kind: End['kind'] = 'sessions'): End => ({
  kind,
  gateSessionId: asId('gate', `gate_${String(n).repeat(26)}`),
})

test('what failed is in the order in which it was tried, each thing once', () => {
  const failed = createFailedEnds()
  for (const one of [end(1), end(2), end(1, 'codes'), end(1)]) failed.add(one)
  expect(failed.all()).toEqual([end(2), end(1, 'codes'), end(1)])
  expect(failed.of('codes')).toEqual([end(1).gateSessionId])
  failed.remove(end(2))
  expect(failed.of('sessions')).toEqual([end(1).gateSessionId])
})

test('of too many the longest untried are forgotten', () => {
  const failed = createFailedEnds({ max: 2 })
  for (const n of [1, 2, 3]) failed.add(end(n))
  expect(failed.all()).toEqual([end(2), end(3)])
})
