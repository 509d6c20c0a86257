import { describe, expect, it } from 'vitest'
import { createRehearsal, type FactRow } from '../../../../services/cli/rescore/rehearse.ts'
import { rescoreText } from '../../../../services/cli/rescore/report.ts'
import { rescorePage } from '../../../../services/cli/rescore/report-html.ts'
import { standardModel } from '../../../../services/scoring/model/model.ts'
import { factRow, modelWith, randomFrom, randomRows } from './session-rows.ts'

const context = {
  candidateId: 'mdl_0123456789ab',
  scope: 'acme, live',
  since: Date.UTC(2026, 10, 16),
  until: Date.UTC(2026, 10, 23),
}
const candidate = modelWith({ developer_tools_detected: 70 })

function rehearse(rows: Iterable<FactRow>) {
  const rehearsal = createRehearsal({ candidate, modelOf: () => standardModel })
  for (const row of rows) rehearsal.add(row)
  return rehearsal.result()
}

const moving = { signals: 'developer_tools_detected' }

it('the text reports verdict changes, and what a rehearsal leaves unchanged', () => {
  const text = rescoreText(rehearse([factRow(moving), factRow()]), context)
  expect(text).toContain(
    'Sessions of acme, live with their newest decision from 2026-11-16T00:00:00Z to',
  )
  expect(text).toContain(
    '1 of 2 sessions (50.0 %) would change verdict. Only the model differs: signals and',
  )
  expect(text).toContain(
    '2 recorded scores can be reproduced from their signals and model; 0 cannot.',
  )
  expect(text).toMatch(/human +│ 1 +│ 1 +│ 0 +│ 2 /)
  expect(text).toMatch(/\+31 to \+40 +│ 1 /)
  expect(text).toContain('Too few labels for precision and recall: each kind needs at least 30.')
  expect(text).toMatch(/developer_tools_detected +│ 1 +│ 1 +│ 1 /)
  expect(text).toMatch(/38 human │ 69 inconclusive │ sid_1 +│ 2026-11-23T12:00:00Z /)
})

it('the text reports zero changes without sessions', () => {
  expect(rescoreText(rehearse([]), context)).toContain(
    '0 of 0 sessions (0.0 %) would change verdict.',
  )
})

describe('the page', () => {
  const rows = [
    ...randomRows(2000, randomFrom(7)),
    factRow({ ...moving, page_host: '"><script>alert(1)</script>' }),
  ]
  const page = rescorePage(rehearse(rows), context)

  it('loads nothing, runs no scripts, and escapes visitor data', () => {
    const link = '<a href="https://db-ip.com">'
    expect(page).toContain(link)
    expect(page.replace(link, '')).not.toMatch(/<script|https?:|url\(|@import|src=/)
    expect(page).toContain('&quot;&gt;&lt;script&gt;')
  })

  it('has a table with the numbers of each chart', () => {
    const sections = page.split('<section').slice(1)
    const plots = sections.filter((section) => section.includes('<svg'))
    expect(plots).toHaveLength(6)
    for (const plot of plots) expect(plot).toMatch(/role="img" aria-label="[^"]+"[\s\S]*<table>/)
    expect(sections).toHaveLength(8)
  })
})
