import type { RunAction } from './action.ts'

const types = [
  'session.fingerprint.calculated',
  'session.result.persisted',
  'gate.session.approved',
]

/** A form for another endpoint of the environment. */
export function NewEndpoint({ run }: { run: RunAction }) {
  const create = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const form = event.currentTarget
    const fields = new FormData(form)
    const name = fields.get('name')
    const body = { name, url: fields.get('url'), event_types: fields.getAll('type') }
    if (await run({ path: '', method: 'POST', body }, `${name} is told from now on.`)) form.reset()
  }
  return (
    <details>
      <summary>Add an endpoint</summary>
      <form class="fields" onSubmit={create}>
        <label>
          Name
          <input name="name" required maxLength={100} />
        </label>
        <label>
          Address
          <input name="url" type="url" required placeholder="https://example.com/webhooks" />
        </label>
        <fieldset>
          <legend>Is told of</legend>
          {types.map((type) => (
            <label key={type}>
              <input
                type="checkbox"
                name="type"
                value={type}
                defaultChecked={type === 'session.result.persisted'}
              />
              {type}
            </label>
          ))}
        </fieldset>
        <button type="submit">Add</button>
      </form>
    </details>
  )
}
