import { expect, test } from 'vitest'
import { createBatcher } from '../../../infra/flow/batcher.ts'
import { type PartitionedRecord, valueBytes } from '../../../infra/log/partition.ts'
import type { Position } from '../../../infra/log/port.ts'

const record = (value: string): PartitionedRecord => ({
  topic: 't',
  key: 'k',
  partition: 0,
  value: Buffer.from(value),
  headers: {},
})

/** A store whose writes finish when the test calls `finish`. */
function slowStore() {
  const batches: string[][] = []
  const finish: (() => void)[] = []
  let next = 0
  async function write(records: PartitionedRecord[]): Promise<Position[]> {
    batches.push(records.map((r) => r.value.toString()))
    await new Promise<void>((resolve) => finish.push(resolve))
    return records.map(() => ({ topic: 't', partition: 0, offset: next++ }))
  }
  return { batches, write, finish: () => finish.shift()?.() }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const limits = { maxItems: 100, maxBytes: 1000, bytesOf: valueBytes }

test('calls that arrive during a batch form the next one, in order', async () => {
  const store = slowStore()
  const appends = createBatcher({ runBatch: store.write, ...limits })
  const first = appends.run([record('a')])
  await settled()
  const rest = ['b', 'c', 'd'].map((value) => appends.run([record(value)]))
  store.finish()
  await settled()
  store.finish()
  expect(await first).toEqual([{ topic: 't', partition: 0, offset: 0 }])
  expect((await Promise.all(rest)).flat().map((p) => p.offset)).toEqual([1, 2, 3])
  expect(store.batches).toEqual([['a'], ['b', 'c', 'd']])
})

test('a batch stays within maxBytes; a larger call is split', async () => {
  const batches: number[] = []
  const write = async (records: PartitionedRecord[]) => {
    batches.push(records.length)
    return records.map(() => ({ topic: 't', partition: 0, offset: 0 }))
  }
  const appends = createBatcher({ runBatch: write, ...limits })
  await Promise.all([
    appends.run([record('x'.repeat(600))]),
    appends.run([record('x'.repeat(600))]),
  ])
  expect(batches).toEqual([1, 1])
  await appends.run(Array.from({ length: 5 }, () => record('x'.repeat(400))))
  expect(batches).toEqual([1, 1, 2, 2, 1])
})

test('a failed batch fails the pending calls, and the next call succeeds', async () => {
  let down = true
  const write = async (records: PartitionedRecord[]) => {
    await settled()
    if (down) throw new Error('down')
    return records.map(() => ({ topic: 't', partition: 0, offset: 7 }))
  }
  const appends = createBatcher({ runBatch: write, ...limits })
  const first = appends.run([record('a')])
  await Promise.resolve()
  const second = appends.run([record('b')])
  await expect(first).rejects.toThrow('down')
  await expect(second).rejects.toThrow('down')
  down = false
  expect(await appends.run([record('c')])).toEqual([{ topic: 't', partition: 0, offset: 7 }])
})
