import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../../..')

export interface DocumentedFlow {
  title: string
  files: string[]
  /** Further files that it runs and that belong to another flow. */
  elsewhere: string[]
}

export interface FlowsPage {
  /** What every flow stands on and no list repeats. */
  common: string[]
  flows: DocumentedFlow[]
}

/** What docs/internals/architecture.md says under "Flows, file by file". Throws for a path that is not there. */
export function documentedFlows(): FlowsPage {
  const page = readFileSync(path.join(root, 'docs/internals/architecture.md'), 'utf8')
  const part = /^## Flows, file by file\n(.*?)(?=^## )/ms.exec(page)?.[1]
  if (!part) throw new Error('docs/internals/architecture.md has no part "Flows, file by file"')
  const [intro = '', ...sections] = part.split(/^### /m)
  return {
    common: pathsIn(intro),
    flows: sections.map((text) => {
      const [title = ''] = text.split('\n')
      const [list = '', elsewhere = ''] = text.split('Runs too:')
      return { title, files: pathsIn(list), elsewhere: pathsIn(elsewhere) }
    }),
  }
}

/** The files that paths in backticks name; a folder stands for all that is below it, `*` for the files of one folder. */
function pathsIn(text: string): string[] {
  const named = [...text.matchAll(/`((?:schemas|infra|projections|services)\/[^`]*)`/g)].map(
    ([, name]) => String(name),
  )
  return named.flatMap((name) => {
    const found =
      name.includes('*') || name.endsWith('/')
        ? below(name)
        : [name].filter((file) => existsSync(path.join(root, file)))
    if (found.length === 0)
      throw new Error(`docs/internals/architecture.md names ${name}, which is not there`)
    return found
  })
}

function below(name: string): string[] {
  return globSync(name.endsWith('/') ? `${name}**/*.ts` : name, { cwd: root })
}
