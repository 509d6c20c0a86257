import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { describeEvents } from '../../schemas/describe-events.ts'
import { describeObservations } from '../../schemas/describe-observations.ts'
import {
  assignIds,
  generateTypes,
  readFactsSchemas,
  readSchemaFiles,
} from '../../schemas/generate.ts'
import ids from '../../schemas/ids.json' with { type: 'json' }

const root = path.resolve(import.meta.dirname, '../..')
const files = readSchemaFiles()
const all = [...files, ...readFactsSchemas()]

test('schemas/events.ts is up to date', () => {
  expect(readFileSync(path.join(root, 'schemas/events.ts'), 'utf8')).toBe(generateTypes(files))
})

test('docs/reference/observations.md is up to date and describes every member', () => {
  const page = readFileSync(path.join(root, 'docs/reference/observations.md'), 'utf8')
  expect(page).toBe(describeObservations())
  const rows = page.match(/^\| `.*$/gm) ?? []
  expect(rows.length).toBeGreaterThan(150)
  expect(rows.filter((row) => !/^\| `\w+` \| [^|]{4,} \| [^|]{5,} \|$/.test(row))).toEqual([])
})

test('docs/reference/events.md is up to date and has every event', () => {
  const page = readFileSync(path.join(root, 'docs/reference/events.md'), 'utf8')
  expect(page).toBe(describeEvents(files))
  const rows = [...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  expect(rows.sort()).toEqual([...new Set(files.map(({ name }) => name))].sort())
})

test('every schema has a unique id, and no schema with an id was removed', () => {
  expect(assignIds(all, ids)).toEqual(ids)
  expect(Object.keys(ids).sort()).toEqual(all.map((file) => file.key).sort())
  expect(new Set(Object.values(ids)).size).toBe(all.length)
})

test('a new schema gets the next id, and the others keep theirs', () => {
  const [first] = files
  if (!first) throw new Error('no schemas')
  const added = { ...first, key: 'collect/New.v1' }
  expect(assignIds([added, ...files], ids)).toEqual({
    ...ids,
    'collect/New.v1': Math.max(...Object.values(ids)) + 1,
  })
})

test('ids and schemas of a release never change, so that its events stay readable', () => {
  for (const tag of releases()) {
    expect(ids).toMatchObject(JSON.parse(git('show', `${tag}:schemas/ids.json`)))
    const changed = git('diff', '--name-status', '--diff-filter=a', tag, '--', 'schemas/*.avsc')
    expect(changed).toBe('')
  }
})

/** Returns the release tags; none outside of a git repository. */
function releases(): string[] {
  try {
    return git('tag', '--list', 'v*').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' })
}
