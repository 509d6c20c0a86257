import { expect, test } from 'vitest'
import { createApprovalLimit } from '../../../../services/gate/approval/approvals.ts'

test('nobody gets more than his share, and all together not more than there are', () => {
  const shares = createApprovalLimit({ max: 5, each: 2 })
  const taken = (names: string) => [...names].map((name) => shares.tryStart(name))
  expect(taken('aaab')).toEqual([true, true, false, true])
  expect(taken('bcd')).toEqual([true, true, false])
  shares.end('a')
  expect(taken('da')).toEqual([true, false])
  for (const name of 'abbcd') shares.end(name)
  expect(taken('eeffgg')).toEqual([true, true, true, true, true, false])
})
