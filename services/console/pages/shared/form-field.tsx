import { type ComponentChildren, cloneElement, type VNode } from 'preact'
import { useId } from 'preact/hooks'

interface FormFieldProps {
  label: string
  /** Error message shown at the field. */
  error?: string | undefined
  hint?: ComponentChildren
  /** The input, select or textarea. */
  children: VNode<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>
}

/** A labeled input with its hint and error message. */
export function FormField({ label, error, hint, children }: FormFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, {
        id,
        'aria-describedby': `${id}-note`,
        'aria-invalid': error !== undefined,
      })}
      <div id={`${id}-note`}>
        {hint && <p class="hint">{hint}</p>}
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
      </div>
    </div>
  )
}
