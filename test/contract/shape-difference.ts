import type { Shape } from './shape.ts'

export interface Pair<T> {
  ours: T
  theirs: T
}

/**
 * Compares shapes, one line for each difference. A component that both sides name alike is compared once, in
 * `components`, however many responses have it.
 */
export function createComparison() {
  const components = new Map<string, Pair<Shape>>()

  function compare(where: string, { ours, theirs }: Pair<Shape | undefined>): string[] {
    if (!ours) return theirs ? [`${where}: not here`] : []
    if (!theirs) return [`${where}: added`]
    const nullable = compareValue(`${where} null`, { ours: ours.nullable, theirs: theirs.nullable })
    const { component } = ours
    if (!component || component !== theirs.component)
      return [...nullable, ...inside(where, { ours, theirs })]
    if (!components.has(component)) components.set(component, { ours, theirs })
    return nullable
  }

  function inside(where: string, { ours, theirs }: Pair<Shape>): string[] {
    const limits = union(Object.keys(ours.limits), Object.keys(theirs.limits))
    return [
      ...compareValue(`${where} type`, { ours: ours.types, theirs: theirs.types }),
      ...compareValue(`${where} enum`, { ours: ours.enum, theirs: theirs.enum }),
      ...compareValue(`${where} other members`, { ours: ours.open, theirs: theirs.open }),
      ...limits.flatMap((name) =>
        compareValue(`${where} ${name}`, { ours: ours.limits[name], theirs: theirs.limits[name] }),
      ),
      ...members(where, { ours, theirs }),
      ...compare(below(where, '[]'), { ours: ours.items, theirs: theirs.items }),
      ...compare(below(where, '{}'), { ours: ours.values, theirs: theirs.values }),
      ...alternatives(where, { ours, theirs }),
    ]
  }

  function members(where: string, { ours, theirs }: Pair<Shape>): string[] {
    const names = union(Object.keys(ours.properties ?? {}), Object.keys(theirs.properties ?? {}))
    return names.flatMap((name) => {
      const at = below(where, where.includes('>') ? `.${name}` : name)
      const pair = { ours: ours.properties?.[name], theirs: theirs.properties?.[name] }
      const required = {
        ours: ours.required?.includes(name),
        theirs: theirs.required?.includes(name),
      }
      const both = pair.ours && pair.theirs
      return [...(both ? compareValue(`${at} required`, required) : []), ...compare(at, pair)]
    })
  }

  function alternatives(where: string, { ours, theirs }: Pair<Shape>): string[] {
    const sides = { ours: named(ours.anyOf), theirs: named(theirs.anyOf) }
    return union(Object.keys(sides.ours), Object.keys(sides.theirs)).flatMap((name) =>
      compare(below(where, `|${name}`), { ours: sides.ours[name], theirs: sides.theirs[name] }),
    )
  }

  return {
    compare,
    /** Differences inside visited components and those that they reference. */
    components(): string[] {
      const found: string[] = []
      // Comparing one may add others; a Map is walked to its end as it grows.
      for (const [name, pair] of components) found.push(...inside(name, pair))
      return found
    },
  }
}

/** Alternatives by the component that they are, or else by their place. */
function named(shapes: Shape[] = []): Record<string, Shape> {
  return Object.fromEntries(shapes.map((shape, i) => [shape.component ?? String(i), shape]))
}

export function compareValue(where: string, { ours, theirs }: Pair<unknown>): string[] {
  const [a, b] = [JSON.stringify(ours) ?? 'none', JSON.stringify(theirs) ?? 'none']
  return a === b ? [] : [`${where}: ${a} here, ${b} published`]
}

export function union(a: Iterable<string>, b: Iterable<string>): string[] {
  return [...new Set([...a, ...b])].sort()
}

function below(where: string, part: string): string {
  return where.includes('>') ? `${where}${part}` : `${where} > ${part}`
}
