import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import type { LoggedInPerson } from '../../schemas.ts'
import { callApi, RequestFailure } from '../shared/api.ts'
import { escapeInvisible } from '../shared/escape-invisible.ts'
import { useMutation } from '../shared/mutation.tsx'
import { person } from '../shared/person.ts'
import { teachAtLogin } from '../shared/teach.ts'

/**
 * Signs in with the code of a login link, or loads the current session. Removes the code from the URL at once. If
 * somebody is already signed in, asks first: a link from an attacker would sign them in to the attacker's account.
 */
export async function initLogin(code = codeInAddress()): Promise<void> {
  if (code) window.history.replaceState(null, '', window.location.pathname + window.location.search)
  loginFailure.value = null
  let unusedCode = code
  try {
    let current = await fetchPerson()
    const question = `You are signed in as ${escapeInvisible(current?.name ?? '')}. Sign in with this link instead?`
    if (code && (!current || window.confirm(question))) {
      unusedCode = null
      await logIn({ code })
      current = await fetchPerson()
    }
    person.value = current
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    loginFailure.value = { failure: error, retry: () => initLogin(unusedCode) }
    return
  }
  if (person.value && loginProblem.value) {
    window.alert(loginProblem.value)
    loginProblem.value = null
  }
  // Best effort: the next login tries again.
  teachAtLogin().catch(() => {})
}

const codeInAddress = () => new URLSearchParams(window.location.hash.slice(1)).get('code')

/** Reloads when a login link is pasted into an open console: browsers don't if only the fragment changes. */
export function reloadOnLoginLink(): void {
  window.addEventListener('hashchange', () => codeInAddress() && window.location.reload())
}

/** Returns null if nobody is signed in. */
async function fetchPerson(): Promise<LoggedInPerson | null> {
  try {
    return (await callApi<{ data: LoggedInPerson }>('/session')).data
  } catch (error) {
    if (error instanceof RequestFailure && error.status === 401) return null
    throw error
  }
}

/** Set if it is unknown whether somebody is signed in. */
export const loginFailure = signal<{ failure: RequestFailure; retry: () => void } | null>(null)

async function logIn(credentials: { code: string } | { secret_key: string }): Promise<void> {
  loginProblem.value = null
  try {
    await callApi('/login', { method: 'POST', body: credentials })
  } catch (error) {
    if (error instanceof RequestFailure) loginProblem.value = error.message
  }
}

const loginProblem = signal<string | null>(null)

/** Login form for a secret key, which is exchanged for a session and not stored. */
export function Login() {
  const [key, setKey] = useState('')
  // A second click would open another session.
  const { run, isRunning } = useMutation()
  const submit = async (event: Event) => {
    event.preventDefault()
    await logIn({ secret_key: key.trim() })
    setKey('')
    if (!loginProblem.value) await initLogin()
  }
  return (
    <main class="login">
      <img src={new URL(mark, import.meta.url).pathname} alt="" width="44" height="44" />
      <h1>Tidegate console</h1>
      {loginProblem.value && (
        <p class="note bad" role="alert">
          {loginProblem.value}
        </p>
      )}
      <p>
        Open the login link printed by <code>make run</code> or <code>tidegate console login</code>.
        It works once, for five minutes.
      </p>
      <form onSubmit={(event) => run(() => submit(event))}>
        <label>
          Or use a secret key
          <input
            type="password"
            autocomplete="off"
            required
            placeholder="sk_live_…"
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </label>
        <p class="hint">You get the permissions of the key until it is revoked.</p>
        <button type="submit" class="button" disabled={isRunning}>
          Sign in
        </button>
      </form>
    </main>
  )
}
