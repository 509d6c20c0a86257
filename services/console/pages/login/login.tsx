import { useState } from 'preact/hooks'
import mark from '../../../../infra/http/mark.svg'
import { RequestFailure, send } from '../shared/api.ts'
import { type LoggedInPerson, person } from '../shared/person.ts'
import { visible } from '../shared/visible.ts'

/**
 * Logs in by the code of the link that was opened, or says who is logged in already. The code leaves the address at once.
 * Whoever is logged in is asked first, because the link may be a stranger's, who would then see what is done here.
 */
export async function arrive(): Promise<void> {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code')
  if (code) window.history.replaceState(null, '', window.location.pathname + window.location.search)
  const known = await whoIsLoggedIn()
  if (
    code &&
    (!known || window.confirm(`You are logged in as ${visible(known.name)}. Log in by this link instead?`))
  )
    await logIn({ code })
  person.value = code ? await whoIsLoggedIn() : known
}

const whoIsLoggedIn = async (): Promise<LoggedInPerson | null> =>
  (await send<{ data: LoggedInPerson }>('/session').catch(() => null))?.data ?? null

async function logIn(by: { code: string } | { secret_key: string }): Promise<void> {
  try {
    await send('/login', { method: 'POST', body: by })
  } catch (error) {
    if (error instanceof RequestFailure) refusal = error.message
  }
}

let refusal: string | null = null

/** For whoever has no link: a secret key, which is exchanged for a session and then forgotten. */
export function Login() {
  const [key, setKey] = useState('')
  const [problem, setProblem] = useState(refusal)
  const submit = async (event: Event) => {
    event.preventDefault()
    refusal = null
    await logIn({ secret_key: key.trim() })
    setKey('')
    setProblem(refusal)
    if (!refusal) await arrive()
  }
  return (
    <main class="login">
      <img src={mark} alt="" width="44" height="44" />
      <h1>Tidegate console</h1>
      {problem && (
        <p class="note bad" role="alert">
          {problem}
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
