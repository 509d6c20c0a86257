import { z } from 'zod'
import { type DrivenPage, openBrowser } from '../chromium.ts'
import { row } from '../report.ts'
import { quantile } from '../stats.ts'

interface PaintOptions {
  url: string
  /** Secret key to sign in with. */
  key: string
  /** Empties the buffers of PostgreSQL. */
  evict: () => Promise<unknown>
  rounds: number
}

/** Milliseconds until the first row was painted. */
interface Paint {
  page: string
  warm: number[]
  cold: number[]
}

// A static file, which shows how long the browser and this machine take for anything.
const floor = '/console/assets/mark.svg'

/** Measures the console's pages in Chromium, from a navigation to the first row painted. */
export async function measurePaint({ url, key, evict, rounds }: PaintOptions): Promise<Paint[]> {
  const browser = await openBrowser()
  try {
    const page = await browser.openPage(url + floor, 1)
    const load = async (path: string, row: string) => {
      await page.navigate(url + path)
      return paintedAt(page, row)
    }
    await load(floor, 'path')
    const login = { method: 'POST', body: JSON.stringify({ secret_key: key }) }
    const options = { ...login, headers: { 'content-type': 'application/json' } }
    await fetchIn(page, '/console/api/login', options)
    const list = await fetchIn(page, '/console/api/v1/sessions?limit=50', {
      headers: { 'tidegate-environment': 'live' },
    })
    const session = z
      .object({ data: z.array(z.object({ id: z.string() })) })
      .parse(list)
      .data.at(-1)
    const pages = [
      { name: 'sessions', path: 'sessions', row: 'tr[data-id]' },
      { name: 'overview', path: 'overview', row: '.stats' },
      { name: 'visitors', path: 'visitors', row: '.rows tbody tr' },
      { name: 'session', path: `sessions/${session?.id}`, row: '.session' },
    ]
    const paints: Paint[] = []
    const floors: Paint = { page: 'static file', warm: [], cold: [] }
    for (const { name, path, row } of pages) {
      const target = `/console/live/${path}`
      await load(target, row)
      const loads: Paint = { page: `${name}, new document`, warm: [], cold: [] }
      const links: Paint = { page: `${name}, by a link`, warm: [], cold: [] }
      for (let round = 0; round < rounds; round++)
        for (const buffers of ['cold', 'warm'] as const) {
          const prepare = async () => buffers === 'cold' && (await evict())
          await load('/console/live/webhooks', '.loaded[aria-busy=false]')
          await prepare()
          links[buffers].push(await followLink(page, target, row))
          await prepare()
          loads[buffers].push(await load(target, row))
          floors[buffers].push(await load(floor, 'path'))
        }
      paints.push(loads, links)
    }
    return [floors, ...paints]
  } finally {
    await browser.close()
  }
}

// The second frame begins after the first one, which has the row, was painted.
const paintedAt = async (page: DrivenPage, row: string, begin = '0'): Promise<number> =>
  z.number().parse(
    await page.evaluate(`new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error('no ${row} within a minute')), 60_000)
      const begun = ${begin}
      const observer = new MutationObserver(check)
      observer.observe(document, { childList: true, subtree: true, attributes: true })
      check()
      function check() {
        if (!document.querySelector('${row}')) return
        observer.disconnect()
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - begun)))
      }
    })`),
  )

const followLink = (page: DrivenPage, path: string, row: string): Promise<number> =>
  paintedAt(
    page,
    row,
    `performance.now()
      const link = document.createElement('a')
      link.href = '${path}'
      document.querySelector('main').append(link)
      link.click()
      link.remove()`,
  )

const fetchIn = (page: DrivenPage, path: string, options: object): Promise<unknown> =>
  page.evaluate(`fetch('${path}', ${JSON.stringify(options)}).then((response) => response.json())`)

export function paintTable(paints: Paint[]): string[] {
  const columns = ['page', 'warm p50 ms', 'p95', 'cold p50 ms', 'p95']
  const rows = paints.map(({ page, warm, cold }) => {
    const times = [warm, cold].map((list) => list.toSorted((a, b) => a - b))
    const quantiles = times.flatMap((list) => [quantile(list, 0.5), quantile(list, 0.95)])
    return row([page, ...quantiles.map((ms) => ms.toFixed(0))])
  })
  return [row(columns), row(columns.map(() => '-')), ...rows]
}
