import { expect, onTestFinished } from 'vitest'
import { createRehearsal } from '../../../../services/cli/rescore/rehearse.ts'
import { rescorePage } from '../../../../services/cli/rescore/report-html.ts'
import { standardModel } from '../../../../services/scoring/model/model.ts'
import { createProfile, openHeadless } from '../../../support/chromium.ts'
import { needs } from '../../../support/needs.ts'
import { modelWith, randomFrom, randomRows } from './session-rows.ts'

const context = { candidateId: 'mdl_0123456789ab', scope: 'acme', since: 0, until: 1 }

needs('chromium').test('on a small phone, only tables are wider than the screen', async () => {
  const rehearsal = createRehearsal({
    candidate: modelWith({ developer_tools_detected: 70 }),
    modelOf: () => standardModel,
  })
  for (const row of randomRows(2000, randomFrom(7)))
    rehearsal.add({ ...row, page_host: `${'a-long-name.'.repeat(9)}example` })
  const profile = await createProfile()
  const browser = await openHeadless(profile)
  onTestFinished(async () => {
    await browser.close()
    await profile.remove()
  })
  const page = await browser.newPage()
  await page.setViewportSize({ width: 360, height: 740 })
  await page.setContent(rescorePage(rehearsal.result(), context))
  const width =
    await page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true })
      document.documentElement.scrollWidth`)
  expect(width).toBe(360)
  const bars =
    await page.evaluate(`[...document.querySelectorAll('rect')].map((one) => one.getBoundingClientRect())
      .filter(({ left, right }) => left < 0 || right > 360).length`)
  expect(bars).toBe(0)
})
