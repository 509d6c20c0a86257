/** Truth and answer of each visit, and when it was. */
export interface Tracked {
  browser: number
  visitor: string
  at: number
}

const groups = <K>(all: Tracked[], of: (one: Tracked) => K) => [...Map.groupBy(all, of).values()]
const mean = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length

export type Measures = ReturnType<typeof measuresOf>

export function measuresOf(all: Tracked[]) {
  const browsers = groups(all, (one) => one.browser)
  const visitors = groups(all, (one) => one.visitor)
  const distinct = <T>(some: T[]) => new Set(some).size
  const sizes = (some: Tracked[][], of: (one: Tracked) => string | number) =>
    new Map(some.flatMap((one) => [[of(one[0] as Tracked), one.length] as const]))
  const ofBrowser = sizes(browsers, (one) => one.browser)
  const ofVisitor = sizes(visitors, (one) => one.visitor)
  const both = new Map<string, number>()
  for (const { browser, visitor } of all)
    both.set(`${browser} ${visitor}`, (both.get(`${browser} ${visitor}`) ?? 0) + 1)
  const common = ({ browser, visitor }: Tracked) => both.get(`${browser} ${visitor}`) ?? 0
  const ownership = visitors.map((some) => Math.max(...some.map(common)) / some.length)
  return {
    idsPerBrowser: mean(browsers.map((some) => distinct(some.map((one) => one.visitor)))),
    ownership: mean(ownership),
    ownershipByVisit:
      ownership.reduce((sum, one, i) => sum + one * (visitors[i]?.length ?? 0), 0) / all.length,
    precision: mean(all.map((one) => common(one) / (ofVisitor.get(one.visitor) ?? 1))),
    recall: mean(all.map((one) => common(one) / (ofBrowser.get(one.browser) ?? 1))),
    mixed:
      visitors.filter((some) => distinct(some.map((one) => one.browser)) > 1).length /
      visitors.length,
    trackedDays: mean(
      browsers.map(
        (some) =>
          Math.max(
            ...groups(some, (one) => one.visitor).map(
              (run) => (run.at(-1)?.at ?? 0) - (run[0]?.at ?? 0),
            ),
          ) / 86_400_000,
      ),
    ),
  }
}
