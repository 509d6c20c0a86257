import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'

interface CorrectionFormProps {
  name: string
  title: string
  about: string
  /** Sends the correction and returns its result for display. */
  correct: (fields: FormData) => Promise<ComponentChildren>
  children?: ComponentChildren
}

/** A form for a split or merge, with a required reason. */
export function CorrectionForm({ name, title, about, correct, children }: CorrectionFormProps) {
  const [result, setResult] = useState<ComponentChildren>(null)
  const { run, failure } = useMutation()
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const form = event.currentTarget
    setResult(null)
    void run(async () => {
      setResult(await correct(new FormData(form)))
      form.reset()
    })
  }
  return (
    <form id={name} class="correction" onSubmit={submit}>
      <h3>{title}</h3>
      <p class="hint">{about}</p>
      {children}
      <label>
        Reason (kept permanently; no personal data)
        <input name="reason" required maxLength={500} autocomplete="off" />
      </label>
      <button type="submit">{title}</button>
      <MutationFailure failure={failure} />
      {result && (
        <p class="note" role="status">
          {result}
        </p>
      )}
    </form>
  )
}
