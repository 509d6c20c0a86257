import { computed, signal } from '@preact/signals'
import { person } from './person.ts'
import { serverPath } from './server-path.ts'

const home = `${serverPath}/console`

const environments = ['live', 'test'] as const
type EnvironmentName = (typeof environments)[number]

/** The URL is the only state: environment, page, filters, time, grouping and what is open. Nothing keeps a copy of it. */
const address = signal(new URL(window.location.href))

window.addEventListener('popstate', () => {
  address.value = new URL(window.location.href)
})

const pageNames = ['overview', 'sessions', 'visitors', 'webhooks', 'settings'] as const
export type PageName = (typeof pageNames)[number]

export interface PageAddress {
  environment: EnvironmentName
  page: PageName
  /** Of one thing of the page, as `/console/live/sessions/sid_...`. */
  id: string | null
  query: URLSearchParams
}

const isEnvironment = (text: string | undefined): text is EnvironmentName =>
  environments.some((one) => one === text)
const isPage = (text: string | undefined): text is PageName => pageNames.some((one) => one === text)

/** null where the path is none of the console's pages. */
export const place = computed<PageAddress | null>(() =>
  pageAddressOf(address.value, person.value?.environments[0] ?? 'live'),
)

function pageAddressOf(
  { pathname, searchParams }: URL,
  usual: EnvironmentName,
): PageAddress | null {
  const [environment = usual, page = 'overview', id = null, ...rest] = pathname
    .slice(home.length)
    .split('/')
    .filter(Boolean)
  if (!isEnvironment(environment) || !isPage(page) || rest.length > 0) return null
  return { environment, page, id, query: searchParams }
}

export interface LinkTarget {
  environment?: EnvironmentName
  page: PageName
  id?: string
  query?: URLSearchParams
}

export function hrefOf({ environment, page, id, query }: LinkTarget): string {
  const path = [home, environment ?? place.value?.environment ?? 'live', page, ...(id ? [id] : [])]
  const text = query?.toString()
  return path.join('/') + (text ? `?${text}` : '')
}

/** Another address of the console. `replace` is for what is no step that "back" should return to. */
export function goTo(href: string, { replace = false } = {}): void {
  if (replace) window.history.replaceState(null, '', href)
  else window.history.pushState(null, '', href)
  address.value = new URL(window.location.href)
}

/** The same page with other parameters. A parameter that is null is taken away. */
export function hrefWith(changes: Record<string, string | string[] | null>): string {
  const { pathname, searchParams } = address.value
  const query = new URLSearchParams(searchParams)
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name)
    for (const one of value === null ? [] : [value].flat()) query.append(name, one)
  }
  const text = query.toString()
  return pathname + (text ? `?${text}` : '')
}

/** Links of the console are followed without loading the page anew; all others as browsers do. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    const isPlain =
      event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!isPlain || event.defaultPrevented || !link || link.target || link.hasAttribute('download'))
      return
    const { origin, pathname } = new URL(link.href)
    if (origin !== window.location.origin || !`${pathname}/`.startsWith(`${home}/`)) return
    event.preventDefault()
    goTo(link.href)
  })
}
