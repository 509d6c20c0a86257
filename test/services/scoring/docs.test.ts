import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { signalCatalogue } from '../../../services/scoring/decide.ts'
import { categories } from '../../../services/scoring/facts.ts'

const page = new URL('../../../docs/scoring.md', import.meta.url)

function table(): string {
  const rows = signalCatalogue.map((signal) => {
    const { slug, role, category, strength, score, looksAt, falsePositives } = signal
    return `| \`${slug}\` | ${role} | ${category} | ${strength} | ${score} | ${looksAt} | ${falsePositives} |`
  })
  return [
    '| Signal | Role | Category | Strength | Score | Looks at | Known false positives |',
    '|-|-|-|-|-|-|-|',
    ...rows,
  ].join('\n')
}

it('docs/scoring.md lists every signal as the catalogue has it', async () => {
  const text = await readFile(page, 'utf8')
  const listed = /<!-- signals -->\n([\s\S]*?)\n?<!-- \/signals -->/.exec(text)?.[1]
  expect(listed?.trim()).toBe(table())
})

it('the catalogue is well-formed', () => {
  const slugs = signalCatalogue.map(({ slug }) => slug)
  expect(new Set(slugs).size).toBe(slugs.length)
  for (const { slug, score, role, category, strength } of signalCatalogue) {
    expect(slug).toMatch(/^[a-z][a-z0-9_]+$/)
    expect(categories).toContain(category)
    expect(Number.isInteger(score) && score >= 0 && score <= 100).toBe(true)
    if (role === 'context') expect(score).toBe(0)
    // A definitive signal decides alone, so that it must reach the band of a bot; no other may.
    if (role === 'risk') expect([slug, score >= 70]).toEqual([slug, strength === 'definitive'])
  }
})
