import { expect, test } from 'vitest'
import { createSharedWork } from '../../../services/console/pages/shared/shared-work.ts'

/** Work of which the test says when it ends. */
function startWork() {
  const begun: { ending: AbortSignal; resolve: (value: string) => void; reject: (error: Error) => void }[] =
    []
  const share = createSharedWork<string>()
  const ask = (key: string, leaving?: AbortSignal) =>
    share(
      key,
      (ending) => {
        const { promise, resolve, reject } = Promise.withResolvers<string>()
        begun.push({ ending, resolve, reject })
        return promise
      },
      leaving,
    )
  return { begun, ask }
}

test('who wants the same at the same time shares it, and who comes later does not', async () => {
  const { begun, ask } = startWork()
  const both = [ask('a'), ask('a')]
  const other = ask('b')
  expect(begun).toHaveLength(2)
  begun[0]?.resolve('one')
  begun[1]?.resolve('other')
  expect(await Promise.all([...both, other])).toEqual(['one', 'one', 'other'])
  const later = ask('a')
  begun[2]?.resolve('two')
  expect(await later).toBe('two')
})

test('it goes on while somebody waits, and is given up with the last one', async () => {
  const { begun, ask } = startWork()
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
  const left = ask('a', first.signal)
  const stayed = ask('a', second.signal)
  first.abort()
  expect(begun[0]?.ending.aborted).toBe(false)
  begun[0]?.resolve('one')
  expect(await stayed).toBe('one')
  await expect(left).rejects.toThrow(/abort/i)
  const alone = ask('a', third.signal)
  third.abort()
  expect(begun[1]?.ending.aborted).toBe(true)
  begun[1]?.reject(new Error('aborted'))
  await expect(alone).rejects.toThrow('aborted')
})

test('a failure is told to all who wait, and the next one begins anew', async () => {
  const { begun, ask } = startWork()
  const both = [ask('a'), ask('a')]
  begun[0]?.reject(new Error('no answer'))
  for (const one of both) await expect(one).rejects.toThrow('no answer')
  const again = ask('a')
  begun[1]?.resolve('one')
  expect(await again).toBe('one')
})
