import { expect, test } from 'vitest'
import { murmur2 } from '../../../infra/log/partition.ts'

test("murmur2 returns the values of Kafka's own test", () => {
  // org.apache.kafka.common.utils.UtilsTest.testMurmur2
  const vectors: [string, number][] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ]
  expect(vectors.map(([text]) => murmur2(Buffer.from(text)))).toEqual(
    vectors.map(([, hash]) => hash),
  )
})
