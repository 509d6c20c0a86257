import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import type { ScoringModelResponse } from '../../../scoring/model/schemas.ts'
import { currentPage, hrefOf, navigate, type PageName } from '../shared/address.ts'
import { callApi, RequestFailure, useResponse } from '../shared/api.ts'
import { usePageKeys } from '../shared/keys.ts'
import { person } from '../shared/person.ts'
import { signalNames } from '../shared/signal-names.ts'

const icons: Record<PageName, string> = {
  overview: 'M3 13h6V3H3zm0 8h6v-6H3zm8 0h10V11H11zm0-18v6h10V3z',
  settings: 'M4 6h10v2H4zm12-2h2v6h-2zM4 16h4v2H4zm6-2h2v6h-2zm4 2h6v2h-6zm6-10h0v2h0z',
  sessions: 'M4 5h16v3H4zm0 5.5h16v3H4zM4 16h16v3H4z',
  visitors: 'M12 3a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zm0 11c5 0 8 2.5 8 7H4c0-4.5 3-7 8-7z',
  webhooks: 'M4 11h10V7l6 5-6 5v-4H4z',
}
const navigation = [
  { page: 'overview', title: 'Overview' },
  { page: 'sessions', title: 'Sessions' },
  { page: 'visitors', title: 'Visitors' },
  { page: 'webhooks', title: 'Webhooks' },
  { page: 'settings', title: 'Settings' },
] as const satisfies { page: PageName; title: string }[]

export function Shell({ children }: { children: ComponentChildren }) {
  const here = currentPage.value
  useNavigationKeys()
  useSignalNames()
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <nav class="side" aria-label="Main">
        <a class="brand" href={hrefOf({ page: 'overview' })}>
          <img src={new URL(mark, import.meta.url).pathname} alt="" width="26" height="26" />
          <span>Tidegate</span>
        </a>
        {navigation.map(({ page, title }) => (
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
        <EnvironmentPicker />
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

// Best effort: without the names, signals are shown by slug.
function useSignalNames(): void {
  const { data: model } = useResponse<{ data: ScoringModelResponse }>('/v1/scoring/model')
  useEffect(() => {
    if (model) signalNames.value = model.data.signal_names
  }, [model])
}

function EnvironmentPicker() {
  const here = currentPage.value
  const environments = person.value?.environments ?? []
  const switchTo = (selected: string) => {
    const environment = environments.find((name) => name === selected)
    if (here && environment) navigate(hrefOf({ environment, page: here.page, query: here.query }))
  }
  return (
    <label class="environment">
      <span>Environment</span>
      <select
        value={here?.environment}
        onChange={({ currentTarget }) => switchTo(currentTarget.value)}
      >
        {environments.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  )
}

function Account() {
  const { name = '', role, organization } = person.value ?? {}
  const [failure, setFailure] = useState<RequestFailure>()
  const signOut = async (path: string) => {
    setFailure(undefined)
    try {
      await callApi(path, { method: 'POST' })
      person.value = null
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      // With status 401, the session is already over.
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
        <button type="button" onClick={() => signOut('/logout')}>
          Sign out
        </button>
        <button type="button" onClick={() => signOut('/logout-everywhere')}>
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
  ['Esc', 'Close the panel opened last'],
  ['[, ]', 'Earlier or later period'],
  ['m', 'Label the open session'],
  ['g s, g o, g v, g w', 'Go to sessions, overview, visitors or webhooks'],
  ['?', 'Show this help'],
]

function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  usePageKeys(({ key }) => key === '?' && dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keyboard</h2>
      <dl class="keys">
        {keys.map(([key, action]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
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

function useNavigationKeys(): void {
  const previousKey = useRef('')
  usePageKeys(({ key }) => {
    const page = previousKey.current === 'g' && pagesByKey[key]
    if (page) navigate(hrefOf({ page }))
    previousKey.current = key
  }, [])
}
