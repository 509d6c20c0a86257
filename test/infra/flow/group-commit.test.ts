import { expect, test } from 'vitest'
import { createGroupCommit } from '../../../infra/flow/group-commit.ts'
import { type PartitionedRecord, valueBytes } from '../../../infra/log/partition.ts'
import type { Position } from '../../../infra/log/port.ts'

const record = (value: string): PartitionedRecord => ({
  topic: 't',
  key: 'k',
  partition: 0,
  value: Buffer.from(value),
  headers: {},
})

/** A store whose writes finish when told to. */
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
const limits = { maxRecords: 100, maxBytes: 1000, bytesOf: valueBytes }

test('appends made while a batch is written go out together, in order', async () => {
  const store = slowStore()
  const commit = createGroupCommit({ write: store.write, ...limits })
  const first = commit.append([record('a')])
  await settled()
  const rest = ['b', 'c', 'd'].map((value) => commit.append([record(value)]))
  store.finish()
  await settled()
  store.finish()
  expect(await first).toEqual([{ topic: 't', partition: 0, offset: 0 }])
  expect((await Promise.all(rest)).flat().map((p) => p.offset)).toEqual([1, 2, 3])
  expect(store.batches).toEqual([['a'], ['b', 'c', 'd']])
})

test('a batch stays within its bytes; an append beyond them is written in pieces', async () => {
  const batches: number[] = []
  const write = async (records: PartitionedRecord[]) => {
    batches.push(records.length)
    return records.map(() => ({ topic: 't', partition: 0, offset: 0 }))
  }
  const commit = createGroupCommit({ write, ...limits })
  await Promise.all([
    commit.append([record('x'.repeat(600))]),
    commit.append([record('x'.repeat(600))]),
  ])
  expect(batches).toEqual([1, 1])
  await commit.append(Array.from({ length: 5 }, () => record('x'.repeat(400))))
  expect(batches).toEqual([1, 1, 2, 2, 1])
})

test('a failed batch fails what waits behind it, and the next append tries again', async () => {
  let down = true
  const write = async (records: PartitionedRecord[]) => {
    await settled()
    if (down) throw new Error('down')
    return records.map(() => ({ topic: 't', partition: 0, offset: 7 }))
  }
  const commit = createGroupCommit({ write, ...limits })
  const first = commit.append([record('a')])
  await Promise.resolve()
  const second = commit.append([record('b')])
  await expect(first).rejects.toThrow('down')
  await expect(second).rejects.toThrow('down')
  down = false
  expect(await commit.append([record('c')])).toEqual([{ topic: 't', partition: 0, offset: 7 }])
})
