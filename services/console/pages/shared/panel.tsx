import type { ComponentChildren } from 'preact'

export function Panel({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

type Facts = Record<string, ComponentChildren>

interface FactPanelProps {
  title: string
  facts: Facts
  children?: ComponentChildren
}

export const FactPanel = ({ title, facts, children }: FactPanelProps) => (
  <Panel title={title}>
    <FactList facts={facts} />
    {children}
  </Panel>
)

/** A list of names and values, without null and empty values. */
export function FactList({ facts }: { facts: Facts }) {
  const present = Object.entries(facts).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  if (present.length === 0) return <p class="hint">No data</p>
  return (
    <dl class="facts">
      {present.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
