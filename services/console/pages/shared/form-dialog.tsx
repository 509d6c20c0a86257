import './forms.css'
import { signal } from '@preact/signals'
import { type ComponentChildren, isValidElement } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { currentPage } from './address.ts'
import { CodeBlock } from './code-block.tsx'
import { Dialog } from './dialog.tsx'
import { FormField } from './form-field.tsx'
import { MutationFailure, useMutation } from './mutation.tsx'
import { isoTime, toFieldValue } from './span.ts'

interface DialogField {
  /** Name of the request field. */
  name: string
  label: string
  hint?: string
  value?: string | readonly string[] | null | undefined
  /** Default: text. The request gets an ISO 8601 time or a number, and null for an empty input. */
  type?: 'datetime-local' | 'number'
  /** Options of a select. */
  options?: readonly string[]
  /** Values of checkboxes, grouped by what precedes the colon or dot. The request gets a list. */
  choices?: readonly string[]
  /** A text area with one value per line. The request gets a list. */
  isList?: boolean
}

type FieldValue = string | string[] | number | null
/** Values by name of the field. */
export type FormBody = Record<string, FieldValue>

export interface FormDialogProps {
  title: string
  /** Label of the button that submits. */
  action: string
  /** Consequences of the action. */
  text?: ComponentChildren
  /** Text to type first, for an action that can't be undone. */
  typed?: string
  fields?: readonly DialogField[]
  /** Sends the request. The dialog shows an element that it returns before it closes; a string is a secret. */
  submit: (body: FormBody) => Promise<unknown>
}

const openForm = signal<FormDialogProps | null>(null)

/** Opens a modal form. It closes once it is submitted or canceled, or when the URL changes. */
export const showForm = (form: FormDialogProps): void => {
  openForm.value = form
}

export function OpenForm() {
  const close = () => {
    openForm.value = null
  }
  useLayoutEffect(() => close, [currentPage.value])
  return openForm.value && <FormDialog {...openForm.value} onClose={close} />
}

function FormDialog(props: FormDialogProps & { onClose: () => void }) {
  const { title, action, text, typed, fields = [], submit, onClose } = props
  const { run, errors, failure, isRunning } = useMutation(fields.map(({ name }) => name))
  const [result, setResult] = useState<ComponentChildren>()
  const send = (form: FormData) =>
    run(async () => {
      const sent = await submit(bodyOf(fields, form))
      if (typeof sent === 'string') setResult(<Secret value={sent} />)
      else if (isValidElement(sent)) setResult(sent)
      else onClose()
    })
  if (result)
    return (
      <Dialog title={title} onClose={onClose}>
        <div class="dialog-form">
          {result}
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
        <div class="row dialog-actions">
          <button type="button" disabled={isRunning} onClick={onClose}>
            Cancel
          </button>
          {/* Without fields, it confirms an action that takes something away. */}
          <button
            type="submit"
            class={fields.length === 0 ? 'danger' : 'button'}
            disabled={isRunning}
          >
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function Secret({ value }: { value: string }) {
  return (
    <>
      <p>Copy this now. It is shown only once.</p>
      <CodeBlock code={value} />
    </>
  )
}

function bodyOf(fields: readonly DialogField[], form: FormData) {
  const fieldValue = (field: DialogField): FieldValue => {
    const { name, type, value, choices, isList } = field
    const values = form.getAll(name).map(String)
    if (choices) return values
    const text = values[0] ?? ''
    if (type && text === '') return null
    if (type === 'number') return Number(text)
    // The input has no seconds, so an unchanged time is sent as it was.
    if (type)
      return typeof value === 'string' && text === initialText(field)
        ? value
        : isoTime(Date.parse(text))
    return isList ? text.split(/\s+/).filter(Boolean) : text
  }
  return Object.fromEntries(fields.map((field) => [field.name, fieldValue(field)]))
}

function initialText({ type, value }: DialogField): string | undefined {
  if (typeof value !== 'string') return value?.join('\n')
  return type === 'datetime-local' ? toFieldValue(Date.parse(value)) : value
}

const inputTypes = {
  text: { type: 'text' },
  number: { type: 'number', step: 'any' },
  'datetime-local': { type: 'datetime-local' },
} as const

const groupOf = (choice: string) => /^\w+(?=[.:])/.exec(choice)?.[0]

function DialogFieldInput({ field, error }: { field: DialogField; error: string | undefined }) {
  const { name, label, hint, type = 'text', value, options, choices, isList } = field
  const text = initialText(field)
  if (choices)
    return (
      <fieldset class="choices field">
        <legend>{label}</legend>
        {[...Map.groupBy(choices, groupOf).values()].map((group) => (
          <div key={group[0]} class="row">
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
    <input {...inputTypes[type]} name={name} defaultValue={text} autocomplete="off" />
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
