import { Counter, type Registry } from 'prom-client'

export interface CounterOptions {
  name: string
  help: string
  /** Every value of each label. */
  labels: Record<string, readonly string[]>
}

/** All series are there from the start, because one that is not there yet hides its first counts from queries for the rate. */
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
    (all, [name, values]) =>
      all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  )
