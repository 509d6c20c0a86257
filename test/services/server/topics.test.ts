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

/** Of the table in docs/operate/production.md: key, retention, writers and readers of each topic. */
const documented = new Map(
  [...page.matchAll(/^\| `(tidegate\.[\w.]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm)].map(
    ([, topic = '', key, kept, , readers = '']) => [topic, { key, kept, readers }],
  ),
)

describe("the page's table of topics", () => {
  test('has those of the events, of the probe and of the claim', () => {
    const known = new Set([...Object.values(eventTopics), 'tidegate.probe.v1', 'tidegate.claim.v1'])
    expect([...documented.keys()].sort()).toEqual([...known].sort())
    expect(specs.map(({ topic }) => topic).sort()).toEqual([...known].sort())
  })

  test.each(specs)('says for how long $topic is kept, and where it has one partition', (spec) => {
    const { topic, partitions, retentionMs } = spec
    const other = { [7 * 24 * hourMs]: '`COLLECT_RETENTION_DAYS`', [hourMs]: 'one hour' }
    const kept = retentionMs === undefined ? 'for ever' : other[retentionMs]
    expect(documented.get(topic)?.kept).toBe(partitions === 1 ? `${kept}, one partition` : kept)
  })

  test.each(projections)('says what the read model $name reads', ({ name, topics }) => {
    const readBy = [...documented].filter(([, { readers }]) =>
      /`projections` \(([^)]*)\)/.exec(readers)?.[1]?.includes(`\`${name}\``),
    )
    expect(readBy.map(([topic]) => topic).toSorted()).toEqual(topics.toSorted())
  })
})

test('the glossary counts as many topics', () => {
  const words = ['six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']
  const glossary = readFileSync(path.join(root, 'docs/internals/glossary.md'), 'utf8')
  expect(glossary).toContain(`There are ${words[specs.length - 6]}, such as`)
})
