import './forms.css'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CodeBlock } from './code-block.tsx'
import { Dialog } from './dialog.tsx'
import { FormField } from './form-field.tsx'
import { MutationFailure, useMutation } from './mutation.tsx'

interface DialogField {
  /** Name of the request field. */
  name: string
  label: string
  hint?: string
  value?: string | readonly string[] | null | undefined
  /** Options of a select. */
  options?: readonly string[]
  /** Values of checkboxes, grouped by what precedes the colon. The request gets a list. */
  choices?: readonly string[]
  /** A text area with one value per line. The request gets a list. */
  isList?: boolean
}

interface FormDialogProps {
  title: string
  /** Label of the button that submits. */
  action: string
  /** Consequences of the action. */
  text?: ComponentChildren
  /** Text to type first, for an action that can't be undone. */
  typed?: string
  fields?: readonly DialogField[]
  /** Sends the request. A string that it returns is a secret, shown before the dialog closes. */
  submit: (body: Record<string, string | string[]>) => Promise<unknown>
}

/** Returns a modal form, and `show`, which opens it. It closes once it is submitted or canceled. */
export function useFormDialog() {
  const [props, show] = useState<FormDialogProps | null>(null)
  const dialog = props && <FormDialog {...props} onClose={() => show(null)} />
  return { dialog, show }
}

function FormDialog(props: FormDialogProps & { onClose: () => void }) {
  const { title, action, text, typed, fields = [], submit, onClose } = props
  const { run, errors, failure, isRunning } = useMutation(fields.map(({ name }) => name))
  const [secret, setSecret] = useState<string>()
  const send = (form: FormData) =>
    run(async () => {
      const result = await submit(bodyOf(fields, form))
      if (typeof result === 'string') setSecret(result)
      else onClose()
    })
  if (secret !== undefined)
    return (
      <Dialog title={title} onClose={onClose}>
        <div class="dialog-form">
          <p>Copy this now. It is shown only once.</p>
          <CodeBlock code={secret} />
          <button type="button" class="button" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={title} onClose={onClose} isBusy={isRunning}>
      <form
        class="dialog-form"
        noValidate={!typed}
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          if (!typed || form.get('typed') === typed) void send(form)
        }}
      >
        {text && <div>{text}</div>}
        {fields.map((field) => (
          <DialogFieldInput key={field.name} field={field} error={errors[field.name]} />
        ))}
        {typed && (
          <FormField label={`Type “${typed}” to confirm`}>
            <input name="typed" required autocomplete="off" />
          </FormField>
        )}
        <MutationFailure failure={failure} />
        <div class="dialog-actions">
          <button type="button" disabled={isRunning} onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={typed ? 'danger' : 'button'} disabled={isRunning}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function bodyOf(fields: readonly DialogField[], form: FormData) {
  const fieldValue = ({ name, choices, isList }: DialogField): string | string[] => {
    const values = form.getAll(name).map(String)
    if (choices) return values
    const text = values[0] ?? ''
    return isList ? text.split(/\s+/).filter(Boolean) : text
  }
  return Object.fromEntries(fields.map((field) => [field.name, fieldValue(field)]))
}

const groupOf = (choice: string) => choice.split(':', 1)[0]

function DialogFieldInput({ field, error }: { field: DialogField; error: string | undefined }) {
  const { name, label, hint, value, options, choices, isList } = field
  const text = typeof value === 'string' ? value : value?.join('\n')
  if (choices)
    return (
      <fieldset class="choices field">
        <legend>{label}</legend>
        {[...Map.groupBy(choices, groupOf).values()].map((group) => (
          <div key={group[0]}>
            {group.map((choice) => (
              <label key={choice}>
                <input
                  type="checkbox"
                  name={name}
                  value={choice}
                  defaultChecked={value?.includes(choice)}
                />
                {choice}
              </label>
            ))}
          </div>
        ))}
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
      </fieldset>
    )
  const input = isList ? (
    <textarea name={name} rows={4} defaultValue={text} />
  ) : (
    <input name={name} defaultValue={text} autocomplete="off" />
  )
  return (
    <FormField label={label} hint={hint} error={error}>
      {options ? (
        <select name={name} defaultValue={text}>
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      ) : (
        input
      )}
    </FormField>
  )
}
