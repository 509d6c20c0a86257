import { expect, test } from 'vitest'
import { createApprovalLimit } from '../../../../services/gate/approval/approvals.ts'

test('no name goes beyond its concurrency limit, and all together not beyond theirs', () => {
  const limit = createApprovalLimit({ max: 5, each: 2 })
  const starts = (names: string) => [...names].map((name) => limit.tryStart(name))
  expect(starts('aaab')).toEqual([true, true, false, true])
  expect(starts('bcd')).toEqual([true, true, false])
  limit.end('a')
  expect(starts('da')).toEqual([true, false])
  for (const name of 'abbcd') limit.end(name)
  expect(starts('eeffgg')).toEqual([true, true, true, true, true, false])
})
