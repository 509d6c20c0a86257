import { expect, test } from 'vitest'
import { isReplaced } from '../../../infra/deploy/image/await-role.ts'

test.each([
  ['there are no pods', [], [], true],
  ['all are old', ['1', '2'], [], false],
  ['one of two is new', ['1', '3'], ['3'], false],
  ['one of three is old', ['1', '3', '4'], ['3', '4'], false],
  ['all are new', ['3', '4'], ['4', '3'], true],
  ['a new one became ready meanwhile', ['3'], ['3', '4'], true],
])(
  'a role is replaced once none of its old pods is ready: %s',
  async (_, ready, ofRelease, replaced) => {
    const addresses = async (name: string) => (name === 'all' ? ready : ofRelease)
    expect(await isReplaced(['all', 'new'], addresses)).toBe(replaced)
  },
)
