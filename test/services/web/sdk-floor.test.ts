import { beforeAll, expect, test } from 'vitest'
import { bundleSdk } from '../../../services/web/sdk-route.ts'

// Newer than Chromium 80, Firefox 78 or Safari 14, as code that uses them without asking would have them.
const statics = [
  'Object.hasOwn',
  'Object.groupBy',
  'Map.groupBy',
  'JSON.rawJSON',
  'Array.fromAsync',
]
const promises = ['Promise.any', 'Promise.withResolvers', 'AbortSignal.timeout', 'AbortSignal.any']
const constructors = ['new WeakRef', 'new AggregateError']
const globals = ['structuredClone(', 'reportError(', 'scheduler.', 'crypto.randomUUID']
const ofLists = [
  '.at(',
  '.findLast(',
  '.findLastIndex(',
  '.toSorted(',
  '.toReversed(',
  '.toSpliced(',
]
const others = ['.with(', '.union(', '.replaceAll(', '.isWellFormed(', '.toWellFormed(']
const ofNodes = ['.replaceChildren(', '.checkVisibility(']
/** Safari 14 cannot even read it. */
const syntax = ['(?<=', '(?<!', '??=', '||=', '&&=', 'static{', ' at #']
const newer = [statics, promises, constructors, globals, ofLists, others, ofNodes, syntax].flat()

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
