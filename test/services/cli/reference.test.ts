import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { cliReference, cliReferenceFile } from '../../../services/cli/reference.ts'

test('docs/reference/cli.md is up to date (npm run cli-reference)', async () => {
  expect(await readFile(cliReferenceFile, 'utf8')).toBe(await cliReference())
})
