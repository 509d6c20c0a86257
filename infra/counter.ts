import { Counter, type Registry } from 'prom-client'

export interface CounterOptions {
  name: string
  help: string
  /** Every value of each label. */
  labels: Record<string, readonly string[]>
}

/** Creates the counter with every series at 0. Otherwise `rate()` would miss the first increment of each series. */
export function createCounter(registry: Registry, { name, help, labels }: CounterOptions): Counter {
  const counter = new Counter({
    name,
    help,
    labelNames: Object.keys(labels),
    registers: [registry],
  })
  for (const series of seriesOf(labels)) counter.inc(series, 0)
  return counter
}

const seriesOf = (labels: CounterOptions['labels']): Record<string, string>[] =>
  Object.entries(labels).reduce<Record<string, string>[]>(
    (combinations, [name, values]) =>
      combinations.flatMap((series) => values.map((value) => ({ ...series, [name]: value }))),
    [{}],
  )
