import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import type { LoggedInPerson } from '../../schemas.ts'
import { RequestFailure, send } from '../shared/api.ts'
import { person } from '../shared/person.ts'
import { teachAtLogin } from '../shared/teach.ts'
import { visible } from '../shared/visible.ts'

/**
 * Logs in by the code of the link that was opened, or finds out who is logged in already. The code leaves the address at
 * once. Asks a logged-in person first: with a stranger's link, the stranger would see what is done here.
 */
export async function arrive(): Promise<void> {
  const code = codeInAddress()
  if (code) window.history.replaceState(null, '', window.location.pathname + window.location.search)
  const current = await whoIsLoggedIn()
  const question = `You are signed in as ${visible(current?.name ?? '')}. Sign in with this link instead?`
  if (code && (!current || window.confirm(question))) await logIn({ code })
  person.value = code ? await whoIsLoggedIn() : current
  if (person.value && refusal.value) {
    window.alert(refusal.value)
    refusal.value = null
  }
  // Nothing waits for it, and the next log-in tries again.
  teachAtLogin().catch(() => {})
}

const codeInAddress = () => new URLSearchParams(window.location.hash.slice(1)).get('code')

/** Opens a link that is pasted into a tab that shows the console: only the fragment differs, so no page would load. */
export function followLoginLinks(): void {
  window.addEventListener('hashchange', () => codeInAddress() && window.location.reload())
}

const whoIsLoggedIn = async (): Promise<LoggedInPerson | null> =>
  (await send<{ data: LoggedInPerson }>('/session').catch(() => null))?.data ?? null

async function logIn(by: { code: string } | { secret_key: string }): Promise<void> {
  refusal.value = null
  try {
    await send('/login', { method: 'POST', body: by })
  } catch (error) {
    if (error instanceof RequestFailure) refusal.value = error.message
  }
}

const refusal = signal<string | null>(null)

/** For whoever has no link: a secret key, which is exchanged for a session and then forgotten. */
export function Login() {
  const [key, setKey] = useState('')
  const submit = async (event: Event) => {
    event.preventDefault()
    await logIn({ secret_key: key.trim() })
    setKey('')
    if (!refusal.value) await arrive()
  }
  return (
    <main class="login">
      <img src={new URL(mark, import.meta.url).pathname} alt="" width="44" height="44" />
      <h1>Tidegate console</h1>
      {refusal.value && (
        <p class="note bad" role="alert">
          {refusal.value}
        </p>
      )}
      <p>
        Open the login link printed by <code>make run</code> or <code>tidegate console login</code>.
        It works once, for five minutes.
      </p>
      <form onSubmit={submit}>
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
        <button type="submit" class="button">
          Sign in
        </button>
      </form>
    </main>
  )
}
