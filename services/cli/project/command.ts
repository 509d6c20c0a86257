import type { Command } from 'commander'
import type { ProjectFlags } from './run.ts'

export function defineProject(command: Command): void {
  command
    .argument('<file>', 'the view, as ./my-view.ts')
    .option('--new', 'write the file, with a view that runs as it is', false)
    .option('--once', 'end when the view has all that the log has now', false)
    .action(async (file: string, flags: ProjectFlags & { new: boolean }) => {
      if (flags.new) return (await import('./template.ts')).writeTemplate(file)
      return (await import('./run.ts')).runProject(file, flags)
    })
}
