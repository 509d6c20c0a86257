import { readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { imports } from './imports.ts'
import { folderCircles, roomOf, structure } from './rooms.ts'

const services = readdirSync(path.resolve(import.meta.dirname, '../../services'))
const all = imports()
const now = structure(all)

test('no import points up a floor, and services do not import each other', () => {
  expect(now.upward).toEqual([])
})

test('no files import each other in a circle, types included', () => {
  expect(now.circles).toEqual([])
})

test.each(services)('no folders of services/%s import each other in a circle', (service) => {
  expect(folderCircles(`services/${service}`, all)).toEqual([])
})

test('two folders that import each other are a circle, and files beside them are none', () => {
  const there = { from: 'services/gate/a/x.ts', to: 'services/gate/b/x.ts' }
  const back = { from: 'services/gate/b/y.ts', to: 'services/gate/a/y.ts' }
  const shared = [
    { from: 'services/gate/routes.ts', to: 'services/gate/a/x.ts' },
    { from: 'services/gate/a/x.ts', to: 'services/gate/context.ts' },
  ]
  expect(folderCircles('services/gate', [there, ...shared])).toEqual([])
  expect(folderCircles('services/gate', [there, back])).toEqual([
    ['services/gate/a', 'services/gate/b'],
  ])
})

const isUpward = (from: string, to: string, isType = false) =>
  structure([{ from, to, isType }]).upward.length === 1

test('services import types of each other, of schemas only', () => {
  const from = 'services/gate/a.ts'
  expect(isUpward(from, 'services/web/b/schemas.ts', true)).toBe(false)
  expect(isUpward(from, 'services/web/schemas/b.ts', true)).toBe(false)
  expect(isUpward(from, 'services/web/b/schemas.ts')).toBe(true)
  expect(isUpward(from, 'services/web/routes.ts', true)).toBe(true)
  expect(isUpward(from, 'services/schemas/routes.ts', true)).toBe(true)
  expect(isUpward('infra/a.ts', 'services/web/b/schemas.ts', true)).toBe(true)
})

// Lists and rules that need no other module.
const sharedWithPages = [
  'infra/spreadsheet.ts',
  'infra/errors/field-problem.ts',
  'infra/access/principal.ts',
  'infra/wire/webhooks/events.ts',
  'schemas/events.ts',
]

test('the pages of the console import nothing of the server but types and what is shared', () => {
  const pages = 'services/console/pages/'
  const outside = all.filter(({ from, to }) => from.startsWith(pages) && !to.startsWith(pages))
  expect(outside.length).toBeGreaterThan(0)
  expect(outside.filter(({ to, isType }) => !isType && !sharedWithPages.includes(to))).toEqual([])
})

test('the reader of imports sees the arrows that it judges', () => {
  expect(now.arrows.get('services/server -> services/collect')).toBeGreaterThan(0)
  expect(now.arrows.get('bench -> services/server')).toBeGreaterThan(0)
  expect(all).toContainEqual({
    from: 'services/console/pages/webhooks/endpoints.tsx',
    to: 'services/console/pages/webhooks/endpoint-actions.tsx',
    isType: false,
  })
  expect(all).toContainEqual({
    from: 'services/console/pages/session/session-context.tsx',
    to: 'services/readback/schemas/sessions.ts',
    isType: true,
  })
  expect(isUpward('services/gate/a.ts', 'bench/b.ts')).toBe(true)
  expect(isUpward('infra/a.ts', 'services/gate/b.ts')).toBe(true)
  expect(isUpward('services/gate/a.ts', 'services/web/b.ts')).toBe(true)
  expect(isUpward('services/new/a.ts', 'infra/b.ts')).toBe(true)
  const round = [
    { from: 'infra/a.ts', to: 'infra/b.ts' },
    { from: 'infra/b.ts', to: 'infra/c.ts' },
    { from: 'infra/c.ts', to: 'infra/a.ts' },
  ]
  expect(structure(round).circles).toEqual([['infra/a.ts', 'infra/b.ts', 'infra/c.ts']])
})

test('a file of a folder belongs to that room, whatever is below', () => {
  expect(roomOf('infra/access/rate-limit/limiter.ts')).toBe('infra/access')
  expect(roomOf('infra/ids.ts')).toBe('infra')
  expect(roomOf('schemas/gate/x.ts')).toBe('schemas')
})
