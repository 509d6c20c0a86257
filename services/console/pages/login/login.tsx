import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import { RequestFailure, send } from '../shared/api.ts'
import { type LoggedInPerson, person } from '../shared/person.ts'
import { visible } from '../shared/visible.ts'

/** Logs in by the code of the link that was opened, or says who is logged in already. */
export async function arrive(): Promise<void> {
  const code = takeCode()
  if (code) await followLink(code)
  else person.value = await whoIsLoggedIn()
}

/** Logs in by a link that is opened in a tab that shows the console, which loads no page. */
export function followLoginLinks(): void {
  window.addEventListener('hashchange', () => {
    const code = takeCode()
    if (code) void followLink(code)
  })
}

/** Returns the code in the address, which it leaves at once. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code')
  if (code) window.history.replaceState(null, '', window.location.pathname + window.location.search)
  return code
}

/** Asks whoever is logged in first, because the link may be a stranger's, who would then see what is done here. */
async function followLink(code: string): Promise<void> {
  const current = await whoIsLoggedIn()
  const question = `You are logged in as ${visible(current?.name ?? '')}. Log in by this link instead?`
  if (!current || window.confirm(question)) await logIn({ code })
  person.value = await whoIsLoggedIn()
  if (!person.value || !refusal.value) return
  window.alert(refusal.value)
  refusal.value = null
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
      <img src={mark} alt="" width="44" height="44" />
      <h1>Tidegate console</h1>
      {refusal.value && (
        <p class="note bad" role="alert">
          {refusal.value}
        </p>
      )}
      <p>
        Open the link that <code>make run</code> or <code>tidegate console login</code> printed. It works
        once, for five minutes.
      </p>
      <form onSubmit={submit}>
        <label>
          Or a secret key
          <input
            type="password"
            autocomplete="off"
            required
            placeholder="sk_live_…"
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </label>
        <p class="hint">You may then do what the key may do, until it is revoked.</p>
        <button type="submit" class="button">
          Sign in
        </button>
      </form>
    </main>
  )
}
