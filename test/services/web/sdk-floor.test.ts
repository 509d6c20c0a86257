import { beforeAll, expect, test } from 'vitest'
import { bundleSdk } from '../../../services/web/sdk-route.ts'

/** Newer than Chromium 80, Firefox 78 or Safari 14, as code that uses them without asking would have them. */
const newer = [
  'Object.hasOwn',
  'AbortSignal.timeout',
  'AbortSignal.any',
  'Array.fromAsync',
  'Promise.any',
  'Promise.withResolvers',
  'crypto.randomUUID',
  'new WeakRef',
  'new AggregateError',
  'JSON.rawJSON',
  'structuredClone(',
  'reportError(',
  'scheduler.',
  'Object.groupBy',
  'Map.groupBy',
  '.replaceAll(',
  '.at(',
  '.findLast(',
  '.findLastIndex(',
  '.toSorted(',
  '.toReversed(',
  '.toSpliced(',
  '.with(',
  '.isWellFormed(',
  '.toWellFormed(',
  '.replaceChildren(',
  '.checkVisibility(',
  '.union(',
  // Syntax that Safari 14 cannot even read.
  '(?<=',
  '(?<!',
  '??=',
  '||=',
  '&&=',
  'static{',
  ' at #',
]

let source: string

beforeAll(async () => {
  source = String((await bundleSdk()).plain)
})

test.each(newer)('the SDK has no %s', (name) => {
  expect(source.split(name).length - 1).toBe(0)
})

test('requestIdleCallback, which Safari has not, is asked for first', () => {
  expect(source).toMatch(/typeof requestIdleCallback\s*==/)
})
