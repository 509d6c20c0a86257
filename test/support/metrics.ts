import { eventually } from './eventually.ts'

/** Returns metrics collected after the call. `/metrics` is cached for a second, and no two texts are equal. */
export async function freshMetrics(baseUrl: string): Promise<string> {
  const read = async () => (await fetch(`${baseUrl}/metrics`)).text()
  const kept = await read()
  return eventually(async () => {
    const text = await read()
    if (text === kept) throw new Error('the metrics are still those of before')
    return text
  })
}

/** Returns the sum of the series of `/metrics` that begin with the text. */
export async function metricOf(baseUrl: string, series: string): Promise<number> {
  const text = await (await fetch(`${baseUrl}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(series))
  if (lines.length === 0) throw new Error(`there is no metric ${series}`)
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}
