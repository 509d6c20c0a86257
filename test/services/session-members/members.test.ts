import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { sessionDetailSchema } from '../../../services/readback/schemas/sessions.ts'
import { decisions, shown } from './fixtures.ts'
import {
  covers,
  type DocumentedMembers,
  documentedMembers,
  membersOf,
  valuesOf,
} from './members.ts'

/** Members that nothing fills, without those below one that is always null. It may go down, and never up. */
const mostUnfilled = 8

const all = membersOf(sessionDetailSchema)
// Marks, identifications and what databases say of an address come from elsewhere and are only passed on: tests of
// marks, of visitors and of `infra/ip`.
const isOfOthers = /^(mark|identification|network)(\.|$)|^analysis_coverage\.network$/
const members = all
  .filter(({ path, isLiteral }) => !isLiteral && !isOfOthers.test(path))
  .map(({ path }) => path)
let rows: DocumentedMembers[]
let constant: string[]

beforeAll(async () => {
  const page = new URL('../../../docs/reference/session.md', import.meta.url)
  rows = documentedMembers(await readFile(page, 'utf8'))
  const [first, ...others] = decisions()
  if (!first) throw new Error('no decisions')
  // As of a release before, and of a provisional decision.
  const earlier = { ...first, repeats: null, scoring_version: '3', model: 'tidegate-3' }
  const answers = [first, earlier, ...others].map(shown)
  constant = members.filter((member) => valuesOf(member, answers).size < 2)
})
const rowsOf = (member: string) =>
  rows.filter(({ paths }) => paths.some((path) => covers(path, member)))

test('docs/reference/session.md says of every member what fills it', () => {
  expect(all.length).toBeGreaterThan(300)
  expect(all.filter(({ path }) => rowsOf(path).length !== 1)).toEqual([])
  const paths = rows.flatMap((row) => row.paths)
  expect(paths.filter((path) => !all.some((member) => covers(path, member.path)))).toEqual([])
})

test('every member takes a second value, but for those of which the page says that nothing fills them, and why', () => {
  const isUnfilled = (member: string) =>
    rowsOf(member).every(({ filledBy }) => /^nothing: \w+/.test(filledBy))
  expect(constant).toEqual(members.filter(isUnfilled))
})

test('no more members stand still than did', () => {
  const isBelow = (member: string) => constant.some((other) => member.startsWith(`${other}.`))
  expect(constant.filter((member) => !isBelow(member)).length).toBeLessThanOrEqual(mostUnfilled)
})
