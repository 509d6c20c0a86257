import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { standardModel } from '../../services/scoring/model/model.ts'
import { signalCatalogue } from '../../services/scoring/signals/catalogue.ts'
import { applyModel } from '../../services/scoring/signals/evaluate.ts'
import { isJudged } from './measures.ts'
import { readResults } from './results.ts'

const page = path.resolve(import.meta.dirname, '../../docs/reference/signals.md')
const place = /(?<=<!-- signals -->\n)[\s\S]*?(?=\n<!-- \/signals -->)/

const titles = { risk: 'Risk', trust: 'Trust', context: 'Context' }

const head = [
  '| Signal | Channel | Strength | Score | Catches | Hurts | Looks at | Known false positives |',
  '|-|-|-|-|-|-|-|-|',
]

/** Returns a table of all signals, with the automation and people on which they fired in the last run. */
export async function signalTable(): Promise<string> {
  const rows = ((await readResults())?.rows ?? []).filter(isJudged)
  const firedOn = (slug: string, isPerson: boolean) =>
    rows.filter(
      ({ kind, signals_fired }) =>
        (kind === 'person') === isPerson && signals_fired.some(({ signal }) => signal === slug),
    ).length
  const groups = Map.groupBy(
    applyModel(standardModel, signalCatalogue),
    ({ role, category }) => `## ${titles[role]}: ${category}`,
  )
  const tables = [...groups].map(([title, signals]) => {
    const lines = signals.map(({ slug, channel, strength, points, looksAt, falsePositives }) => {
      const counted = `${firedOn(slug, false)} | ${firedOn(slug, true)}`
      return `| \`${slug}\` | ${channel} | ${strength} | ${points} | ${counted} | ${looksAt} | ${falsePositives} |`
    })
    return [title, '', ...head, ...lines].join('\n')
  })
  return tables.join('\n\n')
}

export async function shownTable(): Promise<string | undefined> {
  return place.exec(await readFile(page, 'utf8'))?.[0]
}

export async function writeSignalTable(): Promise<void> {
  const table = await signalTable()
  await writeFile(
    page,
    (await readFile(page, 'utf8')).replace(place, () => table),
  )
}

if (import.meta.main) await writeSignalTable()
