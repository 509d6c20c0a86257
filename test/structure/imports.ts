import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')
const tops = ['schemas', 'infra', 'projections', 'services']

export interface Import {
  /** Paths from the project's root. */
  from: string
  to: string
  /** `import type`, of which nothing is left when the program runs. */
  isType?: boolean
}

/** Returns every file of the product, as paths from the root. */
export function sourceFiles(): string[] {
  return filesOf(tops)
}

function filesOf(folders: string[]): string[] {
  return globSync(
    folders.map((folder) => `${folder}/**/*.{ts,tsx,js}`),
    { cwd: root, exclude: ['**/node_modules', '**/.venv'] },
  ).sort()
}

/** Returns every import between files of the product and of bench/, of types too. */
export function imports(): Import[] {
  const files = new Set(filesOf([...tops, 'bench']))
  return [...files].flatMap((from) =>
    specifiers(readFileSync(path.join(root, from), 'utf8'))
      .map(({ specifier, isType }) => ({
        from,
        isType,
        to: path.posix.join(path.posix.dirname(from), specifier),
      }))
      .filter(({ to }) => files.has(to) && to !== from),
  )
}

function specifiers(text: string): { specifier: string; isType: boolean }[] {
  const matches = text.matchAll(/(\bimport type\b[^']*)?(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g)
  return [...matches].map(([, type, specifier]) => ({
    specifier: String(specifier),
    isType: type !== undefined,
  }))
}

/** Sets of files that import each other in a circle (Tarjan's strongly connected components). */
export function circles(arrows: Import[]): string[][] {
  const targets = Map.groupBy(arrows, ({ from }) => from)
  const order = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (file: string): number => {
    order.set(file, order.size)
    let lowest = order.size - 1
    stack.push(file)
    for (const { to } of targets.get(file) ?? []) {
      if (!order.has(to)) lowest = Math.min(lowest, visit(to))
      else if (stack.includes(to)) lowest = Math.min(lowest, low.get(to) ?? order.get(to) ?? 0)
    }
    low.set(file, lowest)
    if (lowest === order.get(file)) {
      const circle = stack.splice(stack.indexOf(file))
      if (circle.length > 1) found.push(circle.sort())
    }
    return lowest
  }
  for (const file of targets.keys()) if (!order.has(file)) visit(file)
  return found
}
