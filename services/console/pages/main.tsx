import { Fragment, render } from 'preact'
import { useEffect } from 'preact/hooks'
import '../../../infra/http/tokens.css'
import '../../../infra/http/base.css'
import './console.css'
import type { LoggedInPerson } from '../schemas.ts'
import { initLogin, Login, loginFailure, reloadOnLoginLink } from './login/login.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { SessionPage } from './session/session.tsx'
import { SessionsPage } from './sessions/sessions.tsx'
import { SettingsPage } from './settings/settings.tsx'
import { currentPage, hrefOf, interceptLinks, type PageAddress } from './shared/address.ts'
import { escapeInvisible, escapeInvisibleEverywhere } from './shared/escape-invisible.ts'
import { person } from './shared/person.ts'
import { startMinuteTicker } from './shared/span.ts'
import { FailureNote, Skeleton } from './shell/loaded.tsx'
import { Shell } from './shell/shell.tsx'
import { VisitorPage } from './visitors/visitor.tsx'
import { VisitorsPage } from './visitors/visitors.tsx'
import { WebhooksPage } from './webhooks/webhooks.tsx'

function Console() {
  const here = currentPage.value
  useEffect(() => {
    document.title = here ? `${escapeInvisible(here.id ?? here.page)} · Tidegate` : 'Tidegate'
  }, [here])
  if (loginFailure.value)
    return (
      <main class="login">
        <FailureNote title="The console could not be loaded." {...loginFailure.value} />
      </main>
    )
  if (person.value === undefined) return <Skeleton />
  if (person.value === null) return <Login />
  return <Shell>{contentOf(here, person.value)}</Shell>
}

function contentOf(here: PageAddress | null, { environments }: LoggedInPerson) {
  const [fallback] = environments
  if (here && environments.includes(here.environment))
    return <Fragment key={here.environment}>{pageOf(here)}</Fragment>
  const missing = here && `Your session has no access to the environment ${here.environment}`
  return (
    <section class="note">
      <h1>{missing ?? 'Page not found'}</h1>
      {fallback && (
        <a href={hrefOf({ environment: fallback, page: 'overview' })}>
          {missing ? `Go to ${fallback}` : 'Go to the overview'}
        </a>
      )}
    </section>
  )
}

const pages = {
  overview: OverviewPage,
  sessions: SessionsPage,
  visitors: VisitorsPage,
  webhooks: WebhooksPage,
  settings: SettingsPage,
}

function pageOf({ page, id, query }: PageAddress) {
  if (id && page === 'sessions') return <SessionPage key={id} id={id} />
  if (id && page === 'visitors') return <VisitorPage key={id} id={id} />
  const Page = pages[page]
  return <Page query={query} />
}

interceptLinks()
reloadOnLoginLink()
startMinuteTicker()
escapeInvisibleEverywhere()
render(<Console />, document.body)
await initLogin()
