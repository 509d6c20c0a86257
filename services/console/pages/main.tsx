import { type ComponentChildren, Fragment, render } from 'preact'
import { useEffect } from 'preact/hooks'
import '../../../infra/http/tokens.css'
import '../../../infra/http/base.css'
import './console.css'
import type { LoggedInPerson } from '../schemas.ts'
import { initLogin, Login, LoginFailure, loginFailure, reloadOnLoginLink } from './login/login.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { SessionPage } from './session/session.tsx'
import { SessionsPage } from './sessions/sessions.tsx'
import { SettingsPage } from './settings/settings.tsx'
import { currentPage, hrefOf, interceptLinks, type PageAddress } from './shared/address.ts'
import { escapeInvisible, escapeInvisibleEverywhere } from './shared/escape-invisible.ts'
import { person } from './shared/person.ts'
import { startMinuteTicker } from './shared/span.ts'
import { Skeleton } from './shell/loaded.tsx'
import { Shell } from './shell/shell.tsx'
import { VisitorPage } from './visitors/visitor.tsx'
import { VisitorsPage } from './visitors/visitors.tsx'
import { WebhooksPage } from './webhooks/webhooks.tsx'

function Console() {
  const here = currentPage.value
  useEffect(() => {
    document.title = here ? `${escapeInvisible(here.id ?? here.page)} · Tidegate` : 'Tidegate'
  }, [here])
  if (loginFailure.value) return <LoginFailure {...loginFailure.value} />
  if (person.value === undefined) return <Skeleton />
  if (person.value === null) return <Login />
  return <Shell>{contentOf(here, person.value)}</Shell>
}

function contentOf(here: PageAddress | null, { environments }: LoggedInPerson) {
  if (!here)
    return (
      <DeadEnd title="Page not found">
        <a href={hrefOf({ page: 'overview' })}>Go to the overview</a>
      </DeadEnd>
    )
  if (!environments.includes(here.environment)) return <NoAccess environment={here.environment} />
  return <Fragment key={here.environment}>{pageOf(here)}</Fragment>
}

function pageOf(here: PageAddress) {
  switch (here.page) {
    case 'sessions':
      return here.id ? (
        <SessionPage key={here.id} id={here.id} />
      ) : (
        <SessionsPage query={here.query} />
      )
    case 'visitors':
      return here.id ? (
        <VisitorPage key={here.id} id={here.id} />
      ) : (
        <VisitorsPage query={here.query} />
      )
    case 'webhooks':
      return <WebhooksPage query={here.query} />
    case 'settings':
      return <SettingsPage query={here.query} />
    default:
      return <OverviewPage query={here.query} />
  }
}

function NoAccess({ environment }: { environment: string }) {
  const [fallback] = person.value?.environments ?? []
  return (
    <DeadEnd title={`Your session has no access to the environment ${environment}`}>
      {fallback && (
        <a href={hrefOf({ environment: fallback, page: 'overview' })}>Go to {fallback}</a>
      )}
    </DeadEnd>
  )
}

function DeadEnd({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="note">
      <h1>{title}</h1>
      <p>{children}</p>
    </section>
  )
}

interceptLinks()
reloadOnLoginLink()
startMinuteTicker()
escapeInvisibleEverywhere()
render(<Console />, document.body)
await initLogin()
