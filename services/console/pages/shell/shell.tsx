import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import { goTo, hrefOf, type PageName, place } from '../shared/address.ts'
import { RequestFailure, send } from '../shared/api.ts'
import { usePageKeys } from '../shared/keys.ts'
import { person } from '../shared/person.ts'

const icons: Record<PageName, string> = {
  overview: 'M3 13h6V3H3zm0 8h6v-6H3zm8 0h10V11H11zm0-18v6h10V3z',
  settings: 'M4 6h10v2H4zm12-2h2v6h-2zM4 16h4v2H4zm6-2h2v6h-2zm4 2h6v2h-6zm6-10h0v2h0z',
  sessions: 'M4 5h16v3H4zm0 5.5h16v3H4zM4 16h16v3H4z',
  visitors: 'M12 3a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zm0 11c5 0 8 2.5 8 7H4c0-4.5 3-7 8-7z',
  webhooks: 'M4 11h10V7l6 5-6 5v-4H4z',
}
const entries = [
  { page: 'overview', title: 'Overview' },
  { page: 'sessions', title: 'Sessions' },
  { page: 'visitors', title: 'Visitors' },
  { page: 'webhooks', title: 'Webhooks' },
  { page: 'settings', title: 'Settings' },
] as const satisfies { page: PageName; title: string }[]

/** Navigation, environment and who is logged in, around a page. */
export function Shell({ children }: { children: ComponentChildren }) {
  const here = place.value
  usePageLinks()
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <nav class="side" aria-label="Main">
        <a class="brand" href={hrefOf({ page: 'overview' })}>
          <img src={new URL(mark, import.meta.url).pathname} alt="" width="26" height="26" />
          <span>Tidegate</span>
        </a>
        {entries.map(({ page, title }) => (
          <a
            key={page}
            href={hrefOf({ page })}
            aria-current={here?.page === page ? 'page' : undefined}
          >
            <svg viewBox="0 0 24 24" aria-hidden="true">
              <path d={icons[page]} />
            </svg>
            {title}
          </a>
        ))}
      </nav>
      <header class="top">
        <Environments />
        <Account />
      </header>
      <main id="main" tabIndex={-1}>
        {person.value?.warnings.map((warning) => (
          <p key={warning} class="note bad" role="status">
            {warning}
          </p>
        ))}
        {children}
      </main>
      <Help />
    </div>
  )
}

function Environments() {
  const here = place.value
  const known = person.value?.environments ?? []
  const change = (name: string) => {
    const environment = known.find((one) => one === name)
    if (here && environment) goTo(hrefOf({ environment, page: here.page, query: here.query }))
  }
  return (
    <label class="environment">
      <span>Environment</span>
      <select
        value={here?.environment}
        onChange={({ currentTarget }) => change(currentTarget.value)}
      >
        {known.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  )
}

function Account() {
  const { name = '', role, organization } = person.value ?? {}
  const [failure, setFailure] = useState<RequestFailure>()
  const leave = async (path: string) => {
    setFailure(undefined)
    try {
      await send(path, { method: 'POST' })
      person.value = null
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      // Somebody whose session was over already is signed out.
      if (error.status !== 401) setFailure(error)
    }
  }
  return (
    <details class="menu">
      <summary>{name || 'Account'}</summary>
      <div class="menu-body">
        <p>
          {organization?.name}
          {role && `, ${role}`}
        </p>
        <button type="button" onClick={() => leave('/logout')}>
          Sign out
        </button>
        <button type="button" onClick={() => leave('/logout-everywhere')}>
          Sign out everywhere
        </button>
        {failure && (
          <p class="note bad" role="alert">
            You are still signed in. {failure.message}
          </p>
        )}
      </div>
    </details>
  )
}

const keys = [
  ['/', 'Filter'],
  ['j, k', 'Next or previous row'],
  ['Enter', 'Open the row'],
  ['Esc', 'Close what was opened last'],
  ['[, ]', 'Earlier or later in time'],
  ['m', 'Go to the marks of the open session'],
  ['g s, g o, g v, g w', 'Go to sessions, to the overview, to visitors, to webhooks'],
  ['?', 'This help'],
]

function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  usePageKeys(({ key }) => key === '?' && dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keyboard</h2>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}

const pagesByKey: Record<string, PageName> = {
  s: 'sessions',
  o: 'overview',
  v: 'visitors',
  w: 'webhooks',
}

function usePageLinks(): void {
  const before = useRef('')
  usePageKeys(({ key }) => {
    const page = before.current === 'g' && pagesByKey[key]
    if (page) goTo(hrefOf({ page }))
    before.current = key
  }, [])
}
