import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ChangeFailure, useChange } from '../shared/change.tsx'

interface CorrectionFormProps {
  /** Id of the form. */
  name: string
  title: string
  about: string
  /** Makes the correction, and returns what it did. */
  correct: (fields: FormData) => Promise<ComponentChildren>
  children?: ComponentChildren
}

/** A form for a split or a merger, which needs a reason. */
export function CorrectionForm({ name, title, about, correct, children }: CorrectionFormProps) {
  const [said, setSaid] = useState<ComponentChildren>(null)
  const { run, failure } = useChange()
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const form = event.currentTarget
    setSaid(null)
    void run(async () => {
      setSaid(await correct(new FormData(form)))
      form.reset()
    })
  }
  return (
    <form id={name} class="correction" onSubmit={submit}>
      <h3>{title}</h3>
      <p class="hint">{about}</p>
      {children}
      <label>
        Why, in your words. It is kept for ever, so say nothing about a person
        <input name="reason" required maxLength={500} autocomplete="off" />
      </label>
      <button type="submit">{title}</button>
      <ChangeFailure failure={failure} />
      {said && (
        <p class="note" role="status">
          {said}
        </p>
      )}
    </form>
  )
}
