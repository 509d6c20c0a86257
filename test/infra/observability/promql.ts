import { parser } from '@prometheus-io/lezer-promql'

export interface UsedNames {
  metrics: string[]
  labels: string[]
}

/** The metrics and labels that an expression names. Throws where it is no PromQL. */
export function namesIn(expression: string): UsedNames {
  const used: UsedNames = { metrics: [], labels: [] }
  parser.parse(expression).iterate({
    enter({ type, name, from, to, node }) {
      const text = expression.slice(from, to)
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`)
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') used.metrics.push(text)
      if (name === 'LabelName') used.labels.push(text)
    },
  })
  return used
}

/** The labels of each sample that a scrape shows, by the sample's name. */
export function labelsOf(scrape: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const [, name = '', labels = ''] of scrape.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set()
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label)
    found.set(name, known)
  }
  return found
}
