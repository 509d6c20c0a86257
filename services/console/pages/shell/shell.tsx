import { type ComponentChildren, Fragment, type TargetedEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import type { ScoringModelResponse } from '../../../scoring/model/schemas.ts'
import { useViews, ViewLinks } from '../sessions/views.tsx'
import { currentPage, hrefOf, navigate, type PageName } from '../shared/address.ts'
import { callApi, isOffline, useResponse } from '../shared/api.ts'
import { Dialog } from '../shared/dialog.tsx'
import { OpenForm } from '../shared/form-dialog.tsx'
import { usePageKeys } from '../shared/keys.ts'
import { Menu } from '../shared/menu.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { person } from '../shared/person.ts'
import { signalNames } from '../shared/signal-names.ts'

const navigation: { page: PageName; title: string; key?: string; icon: string }[] = [
  { page: 'overview', title: 'Overview', key: 'o', icon: 'M4 20V11h4v9zm6 0V4h4v16zm6 0v-6h4v6z' },
  {
    page: 'sessions',
    title: 'Sessions',
    key: 's',
    icon: 'M3 5h3v3H3zm5 0h13v3H8zM3 10.5h3v3H3zm5 0h13v3H8zM3 16h3v3H3zm5 0h13v3H8z',
  },
  {
    page: 'visitors',
    title: 'Visitors',
    key: 'v',
    icon: 'M12 3a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zm0 11c5 0 8 2.5 8 7H4c0-4.5 3-7 8-7z',
  },
  {
    page: 'webhooks',
    title: 'Webhooks',
    key: 'w',
    icon: 'M8 2h2v5h4V2h2v5h2v4a6 6 0 0 1-5 5.9V22h-2v-5.1A6 6 0 0 1 6 11V7h2z',
  },
  {
    page: 'settings',
    title: 'Settings',
    icon: 'M10.2 4.8l.1-2.7h3.4l.1 2.7 2 .9 2-1.9 2.4 2.4-1.9 2 .9 2 2.7.1v3.4l-2.7.1-.9 2 1.9 2-2.4 2.4-2-1.9-2 .9-.1 2.7h-3.4l-.1-2.7-2-.9-2 1.9-2.4-2.4 1.9-2-.9-2-2.7-.1v-3.4l2.7-.1.9-2-1.9-2 2.4-2.4 2 1.9zM12 8.6a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8z',
  },
]

export function Shell({ children }: { children: ComponentChildren }) {
  useNavigationKeys()
  useSignalNames()
  const query = currentPage.value?.query
  const isCurrent = (page: PageName) => currentPage.value?.page === page && !query?.has('view')
  const views = <ViewLinks views={useViews()} current={query?.get('view') ?? null} />
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="side">
        <a class="brand" href={hrefOf({ page: 'overview' })}>
          <img src={new URL(mark, import.meta.url).pathname} alt="" width="26" height="26" />
          <span>Tidegate</span>
        </a>
        <EnvironmentPicker />
        <nav aria-label="Main">
          {navigation.map(({ page, title, icon }) => (
            <Fragment key={page}>
              <a href={hrefOf({ page })} aria-current={isCurrent(page) ? 'page' : undefined}>
                <svg viewBox="0 0 24 24" aria-hidden="true">
                  <path d={icon} fill-rule="evenodd" />
                </svg>
                {title}
              </a>
              {page === 'sessions' && views}
            </Fragment>
          ))}
        </nav>
        <Account />
      </header>
      <main id="main" tabIndex={-1}>
        {isOffline.value && (
          <p class="note bad offline" role="status">
            The server is not responding. Retrying …
          </p>
        )}
        {person.value?.warnings.map((warning) => (
          <p key={warning} class="note bad" role="status">
            {warning}
          </p>
        ))}
        {children}
      </main>
      <Help />
      <OpenForm />
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
    <select
      aria-label="Environment"
      value={here?.environment}
      onChange={({ currentTarget }) => switchTo(currentTarget.value)}
    >
      {environments.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  )
}

function Account() {
  const { name = '', role, organization } = person.value ?? {}
  const { run, failure } = useMutation()
  const signOut = (event: TargetedEvent, path: string) => {
    // The menu stays open to show a failure.
    event.preventDefault()
    void run(async () => {
      // Status 401, an ended session, also sets `person` to null.
      await callApi(path, { method: 'POST' })
      person.value = null
    })
  }
  return (
    <div class="account">
      <Menu label={name || 'Account'}>
        <p class="hint">
          {organization?.name}
          {role && `, ${role}`}
        </p>
        <button type="button" onClick={(event) => signOut(event, '/logout')}>
          Sign out
        </button>
        <button type="button" onClick={(event) => signOut(event, '/logout-everywhere')}>
          Sign out everywhere
        </button>
        <MutationFailure failure={failure && `You are still signed in. ${failure}`} />
      </Menu>
    </div>
  )
}

const keys = [
  ['/', 'Filter'],
  ['j, k', 'Next or previous row'],
  ['Enter', 'Open the row'],
  ['Shift+Enter', 'Open the session as a page'],
  ['x', 'Select the row'],
  ['Esc', 'Close the panel opened last'],
  ['[, ]', 'Earlier or later period'],
  ['m', 'Label the open session'],
  ['g s, g o, g v, g w', 'Go to sessions, overview, visitors or webhooks'],
  ['?', 'Show this help'],
]

function Help() {
  const [isOpen, setOpen] = useState(false)
  usePageKeys(({ key }) => key === '?' && setOpen(true), [])
  return (
    isOpen && (
      <Dialog title="Keyboard shortcuts" onClose={() => setOpen(false)}>
        <dl class="facts">
          {keys.map(([key, action]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{action}</dd>
            </div>
          ))}
        </dl>
      </Dialog>
    )
  )
}

function useNavigationKeys(): void {
  const previousKey = useRef('')
  usePageKeys(({ key }) => {
    const target = previousKey.current === 'g' && navigation.find((entry) => entry.key === key)
    if (target) navigate(hrefOf(target))
    previousKey.current = key
  }, [])
}
