import { beforeAll, expect, test } from 'vitest'
import { bundleSdk } from '../../../services/web/sdk-route.ts'

// Built-ins and syntax that Chromium 80, Firefox 78 or Safari 14 lack.
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
const arrays = [
  '.at(',
  '.findLast(',
  '.findLastIndex(',
  '.toSorted(',
  '.toReversed(',
  '.toSpliced(',
]
const others = ['.with(', '.union(', '.replaceAll(', '.isWellFormed(', '.toWellFormed(']
const nodes = ['.replaceChildren(', '.checkVisibility(']
/** Syntax errors in Safari 14. */
const syntax = ['(?<=', '(?<!', '??=', '||=', '&&=', 'static{', ' at #']
const newer = [statics, promises, constructors, globals, arrays, others, nodes, syntax].flat()

let source: string

beforeAll(async () => {
  source = String((await bundleSdk()).plain)
})

test.each(newer)('the SDK does not use %s', (name) => {
  expect(source.split(name).length - 1).toBe(0)
})

test('the SDK checks for requestIdleCallback, which Safari lacks', () => {
  expect(source).toMatch(/typeof requestIdleCallback\s*==/)
})
