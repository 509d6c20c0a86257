import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../../infra/ip/network.ts'
import type { FactRow } from '../../../../services/cli/rescore/compare.ts'
import { startObserved } from '../../../../services/cli/rescore/observed.ts'
import { type Rehearsal, startRehearsal } from '../../../../services/cli/rescore/rehearse.ts'
import { rescoreText } from '../../../../services/cli/rescore/report.ts'
import { rescorePage } from '../../../../services/cli/rescore/report-html.ts'
import { standardModel } from '../../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../../services/scoring/model/score.ts'
import { factRow, modelWith, randomFrom, randomRows } from './given-rows.ts'

const about = {
  ...{ tried: 'Model mdl_0123456789ab', scope: 'acme, live' },
  ...{ since: Date.UTC(2026, 10, 16), until: Date.UTC(2026, 10, 23) },
}
const tried = modelWith({ developer_tools_detected: 70 })

function rehearse(rows: Iterable<FactRow>) {
  const rehearsal = startRehearsal({ tried, modelOf: () => standardModel })
  for (const row of rows) rehearsal.add(row)
  return rehearsal.result()
}

const moving = { signals: 'developer_tools_detected' }

describe('the text', () => {
  it('says what moves, and what a rehearsal does not change', () => {
    const text = rescoreText(rehearse([factRow(moving), factRow()]), about)
    expect(text).toContain('Sessions of acme, live, whose newest decision is from 2026-11-16T00:00:00Z to')
    expect(text).toContain('1 of 2 sessions (50.0 %) get another verdict. Which signals fired and what was')
    expect(text).toContain(
      '2 recorded scores follow from their signals and the model that decided; 0 do not.',
    )
    expect(text).toMatch(/human +│ 1 +│ 1 +│ 0 +│ 2 /)
    expect(text).toMatch(/\+31 to \+40 +│ 1 /)
    expect(text).toContain('Too few marks for precision and recall, which take 30 of each.')
    expect(text).toMatch(/developer_tools_detected +│ 1 +│ 1 +│ 1 /)
    expect(text).toMatch(/38 human │ 69 inconclusive │ sid_1 +│ 2026-11-23T12:00:00Z /)
  })

  it('has nothing to say where there are no sessions', () => {
    expect(rescoreText(rehearse([]), about)).toContain('0 of 0 sessions (0.0 %) get another verdict.')
  })
})

describe('the page', () => {
  const rows = [
    ...randomRows(2000, randomFrom(7)),
    factRow({ ...moving, page_host: '"><script>alert(1)</script>' }),
  ]
  const page = rescorePage(rehearse(rows), about)

  it('loads nothing, runs nothing, and takes what visitors named as text', () => {
    const link = '<a href="https://db-ip.com">'
    expect(page).toContain(link)
    expect(page.replace(link, '')).not.toMatch(/<script|https?:|url\(|@import|src=/)
    expect(page).toContain('&quot;&gt;&lt;script&gt;')
  })

  it('has a table with the numbers of each plot', () => {
    const sections = page.split('<section').slice(1)
    const plots = sections.filter((section) => section.includes('<svg'))
    expect(plots).toHaveLength(6)
    for (const plot of plots) expect(plot).toMatch(/role="img" aria-label="[^"]+"[\s\S]*<table>/)
    expect(sections).toHaveLength(8)
  })
})

describe('the report of an update', () => {
  const ofRelease = { ...about, tried: 'Release 0.2.0' }

  function rehearsed(): Rehearsal {
    const observed = startObserved(() => standardModel)
    const decided = (slugs: string) => {
      const row = { ...factRow({ signals: slugs }), signals: slugs }
      const recorded = { network: noNetwork.lookup('', 0), repeats: null, agent: null, attestation: null }
      return { row, decisionId: 'evt_1', openedAt: 0, ...recorded }
    }
    const judged = (signals: string[]) => {
      const { risk, verdict } = scoreOf(standardModel, { signals, hasSnapshot: true })
      return { model: standardModel, signals, risk, verdict }
    }
    observed.add(decided('engine_contradicted'), judged(['engine_contradicted']))
    observed.add(decided('webdriver_detected'), judged([]))
    observed.add(decided(''), judged(['instant_submit']))
    for (const reason of ['erased', 'expired', 'expired', 'incomplete'] as const) observed.leaveOut(reason)
    return { ...observed.result(), ended: 0, unknown_signals: { sessions: 0, signals: {} } }
  }

  it('says what fires otherwise, what is not judged, and what a changed rule leaves unjudged', () => {
    const text = rescoreText(rehearsed(), ofRelease)
    expect(text).toContain('Release 0.2.0, tried on recorded sessions')
    expect(text).toContain(
      '1 of 3 sessions (33.3 %) get another verdict. Visitors, networks and what others did',
    )
    expect(text).toContain('Not judged, because they were erased: 1')
    expect(text).toContain('Not judged, because they have observations that are no longer kept: 2')
    expect(text).toContain('Not judged, because they were not decided by all of their observations: 1')
    expect(text).toMatch(/webdriver_detected +│ 0 +│ 1 /)
    expect(text).toMatch(/instant_submit +│ 1 +│ 0 /)
    expect(text).toContain('it is not judged of up to 3 sessions')
    expect(text).toMatch(/engine_contradicted +│ learned answers │ 1 +│ 3 /)
  })

  it('has the same in a page', () => {
    const page = rescorePage(rehearsed(), ofRelease)
    expect(page).toContain('<h1>Release 0.2.0, tried on recorded sessions</h1>')
    expect(page).toContain('<h2 id="fires">Signals that fire otherwise</h2>')
    expect(page).toContain('<h2 id="as_fired">Signals that fire as they did</h2>')
  })
})
