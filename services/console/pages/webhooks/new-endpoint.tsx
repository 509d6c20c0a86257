import type { RunAction } from './run-action.ts'

const eventTypes = [
  'session.fingerprint.calculated',
  'session.result.persisted',
  'gate.session.approved',
]

export function NewEndpoint({ run }: { run: RunAction }) {
  const create = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const form = event.currentTarget
    const fields = new FormData(form)
    const name = fields.get('name')
    const body = { name, url: fields.get('url'), event_types: fields.getAll('type') }
    if (await run({ path: '', method: 'POST', body }, `${name} receives events from now on.`))
      form.reset()
  }
  return (
    <details>
      <summary>Add endpoint</summary>
      <form class="fields" onSubmit={create}>
        <label>
          Name
          <input name="name" required maxLength={100} />
        </label>
        <label>
          URL
          <input name="url" type="url" required placeholder="https://example.com/webhooks" />
        </label>
        <fieldset>
          <legend>Events</legend>
          {eventTypes.map((type) => (
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
