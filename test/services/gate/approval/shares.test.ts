import { expect, test } from 'vitest'
import { createShares } from '../../../../services/gate/approval/shares.ts'

test('nobody gets more than his share, and all together not more than there are', () => {
  const shares = createShares({ max: 5, each: 2 })
  const taken = (names: string) => [...names].map((name) => shares.take(name))
  expect(taken('aaab')).toEqual([true, true, false, true])
  expect(taken('bcd')).toEqual([true, true, false])
  shares.giveBack('a')
  expect(taken('da')).toEqual([true, false])
  for (const name of 'abbcd') shares.giveBack(name)
  expect(taken('eeffgg')).toEqual([true, true, true, true, true, false])
})
