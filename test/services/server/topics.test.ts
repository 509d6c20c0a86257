import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { projections, topicSpecs } from '../../../services/server/dependencies.ts'
import { root } from '../../support/test-projects.ts'

const page = readFileSync(path.join(root, 'docs/operate/production.md'), 'utf8')
const specs = topicSpecs(readConfig({ KAFKA_BROKERS: 'broker:9092' }))
const hourMs = 60 * 60 * 1000

/** Key, retention and readers of each topic in the table of docs/operate/production.md. */
const documented = new Map(
  [...page.matchAll(/^\| `(tidegate\.[\w.]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm)].map(
    ([, topic = '', key, retention, , readers = '']) => [topic, { key, retention, readers }],
  ),
)

describe('the documented table of topics', () => {
  test('has all topics of events, the probe topic and the claim topic', () => {
    const expected = new Set([
      ...Object.values(eventTopics),
      'tidegate.probe.v1',
      'tidegate.claim.v1',
    ])
    expect([...documented.keys()].sort()).toEqual([...expected].sort())
    expect(specs.map(({ topic }) => topic).sort()).toEqual([...expected].sort())
  })

  test.each(specs)('has the retention of $topic, and whether it has one partition', (spec) => {
    const { topic, partitions, retentionMs } = spec
    const other = { [7 * 24 * hourMs]: '`COLLECT_RETENTION_DAYS`', [hourMs]: 'one hour' }
    const retention = retentionMs === undefined ? 'forever' : other[retentionMs]
    expect(documented.get(topic)?.retention).toBe(
      partitions === 1 ? `${retention}, one partition` : retention,
    )
  })

  test.each(projections)('has the topics that the read model $name reads', ({ name, topics }) => {
    const readBy = [...documented].filter(([, { readers }]) =>
      /`projections` \(([^)]*)\)/.exec(readers)?.[1]?.includes(`\`${name}\``),
    )
    expect(readBy.map(([topic]) => topic).toSorted()).toEqual(topics.toSorted())
  })
})

test('the glossary has the right number of topics', () => {
  const words = ['six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']
  const glossary = readFileSync(path.join(root, 'docs/internals/glossary.md'), 'utf8')
  expect(glossary).toContain(`There are ${words[specs.length - 6]}, such as`)
})
