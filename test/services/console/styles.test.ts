import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../support/test-projects.ts'

// The bundler joins all files into one style sheet.
const files = globSync('services/console/pages/*/*.css', { cwd: root })
const classesOf = (file: string) =>
  new Set(readFileSync(path.join(root, file), 'utf8').match(/^\.[\w-]+/gm) ?? [])

test('no CSS class is defined by two pages', () => {
  expect(files.length).toBeGreaterThan(2)
  const all = files.flatMap((file) => [...classesOf(file)])
  expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([])
})
