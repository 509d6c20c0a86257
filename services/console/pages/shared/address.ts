import { computed, signal } from '@preact/signals'
import { person } from './person.ts'

/**
 * Path prefix of the server, without a trailing slash: empty, or `/tg` behind a proxy that adds one. Read from this
 * script's URL, because a proxy that strips the prefix does not tell the server.
 */
export const serverPath =
  /^(.*)\/console\/assets\//.exec(new URL(import.meta.url).pathname)?.[1] ?? ''

const consolePath = `${serverPath}/console`

const environments = ['live', 'test'] as const
type EnvironmentName = (typeof environments)[number]

/** The current URL. It holds all navigation state: environment, page, filters, period, grouping and the open row. */
const address = signal(new URL(window.location.href))

window.addEventListener('popstate', () => {
  address.value = new URL(window.location.href)
})

const pageNames = ['overview', 'sessions', 'visitors', 'webhooks', 'settings'] as const
export type PageName = (typeof pageNames)[number]

export interface PageAddress {
  environment: EnvironmentName
  page: PageName
  /** Id of a detail view, as in `/console/live/sessions/sid_...`. */
  id: string | null
  query: URLSearchParams
}

/** The page at the current URL; null if the URL matches no page. */
export const currentPage = computed<PageAddress | null>(() => {
  const { pathname, searchParams: query } = address.value
  const parts = pathname.slice(consolePath.length).split('/').filter(Boolean)
  const [first = person.value?.environments[0] ?? 'live', second = 'overview', id = null] = parts
  const environment = environments.find((name) => name === first)
  const page = pageNames.find((name) => name === second)
  if (!environment || !page || parts.length > 3) return null
  return { environment, page, id, query }
})

interface LinkTarget {
  environment?: EnvironmentName
  page: PageName
  id?: string
  query?: URLSearchParams
}

export function hrefOf({ environment, page, id, query }: LinkTarget): string {
  const path = [
    consolePath,
    environment ?? currentPage.value?.environment ?? 'live',
    page,
    ...(id ? [id] : []),
  ]
  const text = query?.toString()
  return path.join('/') + (text ? `?${text}` : '')
}

/** Navigates within the console. `replace` adds no history entry. */
export function navigate(href: string, { replace = false } = {}): void {
  if (replace) window.history.replaceState(null, '', href)
  else window.history.pushState(null, '', href)
  address.value = new URL(window.location.href)
}

/** Returns the current URL with changed parameters; null removes a parameter. */
export function hrefWith(changes: Record<string, string | string[] | null>): string {
  const { pathname, searchParams } = address.value
  const query = new URLSearchParams(searchParams)
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name)
    for (const item of value === null ? [] : [value].flat()) query.append(name, item)
  }
  const text = query.toString()
  return pathname + (text ? `?${text}` : '')
}

/** Makes links within the console navigate without reloading the page. */
export function interceptLinks(): void {
  document.addEventListener('click', (event) => {
    const isPlainClick =
      event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (
      !isPlainClick ||
      event.defaultPrevented ||
      !link ||
      link.target ||
      link.getAttribute('href')?.startsWith('#') ||
      link.hasAttribute('download')
    )
      return
    const { origin, pathname } = new URL(link.href)
    if (origin !== window.location.origin || !`${pathname}/`.startsWith(`${consolePath}/`)) return
    event.preventDefault()
    navigate(link.href)
  })
}
